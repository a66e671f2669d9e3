// Sends the second secret of the browser session with the page's socket. Other ports of the host do not have it.
(() => {
  const secret = localStorage.getItem("keepstone-page");
  const connect = window.io;
  if (!secret) location.replace(`/sign-in?${new URLSearchParams({ ended: 1, next: location.pathname + location.search })}`);
  window.io = (url, options) => {
    options.query.keepstone_page = secret;
    return connect(url, options);
  };
})();
