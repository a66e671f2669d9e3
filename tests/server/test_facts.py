"""Facts by key over HTTP."""

import httpx

FACTS = "/v1/agents/facts/facts"


def test_a_fact_is_set_and_read(http: httpx.Client) -> None:
    answer = http.put(f"{FACTS}/plan", json={"value": "Free"})
    assert (answer.status_code, answer.json()["data"]) == (200, {"key": "plan", "value": "Free"})
    newer = http.put(f"{FACTS}/plan", json={"value": ["Pro", 1]}).json()
    assert newer["links"] == [{"to": answer.json()["id"], "rel": "supersedes"}]
    assert http.get(f"{FACTS}/plan").json() == {"key": "plan", "value": ["Pro", 1]}
    assert http.get(FACTS).json() == {"facts": {"plan": ["Pro", 1]}}


def test_a_fact_of_another_session_is_set_and_unset(http: httpx.Client) -> None:
    team = {"session": "team"}
    http.put(f"{FACTS}/a%2Fb", json={"value": 1}, params=team).raise_for_status()
    assert http.get(FACTS, params=team).json() == {"facts": {"a/b": 1}}
    assert http.get(f"{FACTS}/a%2Fb").status_code == 404
    answers = [http.delete(f"{FACTS}/a%2Fb", params=team).json()["unset"] for _ in range(2)]
    assert answers == [True, False]


def test_null_is_no_value(http: httpx.Client) -> None:
    assert http.put(f"{FACTS}/none", json={"value": None}).status_code == 400
    assert http.put(f"{FACTS}/none", json={}).status_code == 400
