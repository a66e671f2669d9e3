"""The routes below ``/v1``, one module a resource."""
