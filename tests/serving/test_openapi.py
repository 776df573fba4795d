"""The OpenAPI document: valid, the same as the routes, and kept to under drawn requests; Annif's own schema too."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from starlette.routing import Route

from tailwise.serving.app import OPERATIONS
from tailwise.serving.documentation import document

ANNIF_SCHEMA = Path(__file__).parents[2] / ".venv-annif/lib/python3.11/site-packages/annif/openapi/annif.yaml"
FEW = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_route_is_described_and_every_description_has_a_route(client):
    described = {(method.upper(), path) for path, found in document(OPERATIONS)["paths"].items() for method in found}
    routed = {
        (method, route.path)
        for route in client.app.routes
        if isinstance(route, Route) and route.name in {one.name for one in OPERATIONS}
        for method in route.methods - {"HEAD"}
    }
    assert described == routed
    assert client.get("/openapi.json").json() == document(OPERATIONS)
    names = [one.name for one in OPERATIONS]
    assert len(set(names)) == len(names)


def schemathesis_of(schema, service):
    """Every operation of a schema under drawn requests: no 5xx, and answers as the schema says."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed (extra peers)")
    found = schemathesis.openapi.from_dict(schema)
    base = schema["servers"][0]["url"].rstrip("/")
    asked = []
    for result in found.get_all_operations():
        operation = result.ok()

        @FEW
        @schemathesis_given(operation)
        def ask(case):
            if "project_id" in (case.path_parameters or {}):
                case.path_parameters["project_id"] = "subjects"
            response = case.call(base_url=f"http://{service.url}{base}")
            assert response.status_code < 500, response.text
            case.validate_response(response, checks=CHECKS())

        ask()
        asked.append(operation.label)
    return asked


def schemathesis_given(operation):
    from hypothesis import given

    return given(case=operation.as_strategy())


def CHECKS():
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    return (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)


def test_our_schema_is_kept(one_worker):
    asked = schemathesis_of(document(OPERATIONS), one_worker)
    assert len(asked) == len(OPERATIONS)


def test_annifs_schema_is_kept(one_worker):
    yaml = pytest.importorskip("yaml")
    if not ANNIF_SCHEMA.exists():
        pytest.skip("Annif is not installed (make peers)")
    # As JSON: YAML makes dates of examples and numbers of statuses.
    schema = json.loads(json.dumps(yaml.safe_load(ANNIF_SCHEMA.read_text()), default=str))
    assert len(schemathesis_of(schema, one_worker)) == 8
