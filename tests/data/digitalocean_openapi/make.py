"""Our own description of the calls that the emulated cloud answers, written by hand from what those tests need."""

import re
from typing import Any

from tests.data.digitalocean_openapi.schemas import COUNT, SCHEMAS, TEXT, Schema, page, record, ref, several, words

DROPLET = "/v2/droplets/{droplet_id}"
DESTROY = f"{DROPLET}/destroy_with_associated_resources"
PAGED = {"page": {"type": "integer", "minimum": 1}, "per_page": {"type": "integer", "minimum": 1, "maximum": 200}}
TAG_NAME = {"tag_name": TEXT}
QUERIES: dict[str, dict[str, Schema]] = {
    "GET /v2/droplets": {**TAG_NAME, "name": TEXT, "type": words("droplets", "gpus")},
    "DELETE /v2/droplets": TAG_NAME,
    "POST /v2/droplets/actions": TAG_NAME,
    "GET /v2/snapshots": {"resource_type": words("droplet", "volume")},
}


def one(key: str, name: str) -> Schema:
    """An answer about one thing."""
    return record({key: ref(name)})


ACTIONS, ACTION, SNAPSHOT = page("actions", "Action"), one("action", "Action"), one("snapshot", "Snapshot")
INVOICES = page("invoices", "Invoice")
INVOICES["properties"]["invoice_preview"] = ref("Invoice")
# Each call: the schema of its body, the status of its success, and the schema of that answer; None: no body.
CALLS: dict[str, tuple[str | None, int, Schema | None]] = {
    "GET /v2/account": (None, 200, one("account", "Account")),
    "GET /v2/account/keys": (None, 200, page("ssh_keys", "Key")),
    "POST /v2/account/keys": ("NewKey", 201, one("ssh_key", "Key")),
    "GET /v2/account/keys/{key}": (None, 200, one("ssh_key", "Key")),
    "PUT /v2/account/keys/{key}": ("NewName", 200, one("ssh_key", "Key")),
    "DELETE /v2/account/keys/{key}": (None, 204, None),
    "GET /v2/customers/my/balance": (None, 200, ref("Balance")),
    "GET /v2/customers/my/invoices": (None, 200, INVOICES),
    "GET /v2/customers/my/invoices/{invoice_uuid}": (None, 200, page("invoice_items", "InvoiceItem")),
    "GET /v2/sizes": (None, 200, page("sizes", "Size")),
    "GET /v2/regions": (None, 200, page("regions", "Region")),
    "GET /v2/vpcs": (None, 200, page("vpcs", "Vpc")),
    "GET /v2/reserved_ips": (None, 200, page("reserved_ips", "Any")),
    "GET /v2/firewalls": (None, 200, page("firewalls", "Any")),
    "GET /v2/actions": (None, 200, ACTIONS),
    "GET /v2/actions/{action_id}": (None, 200, ACTION),
    "GET /v2/droplets": (None, 200, page("droplets", "Droplet")),
    "POST /v2/droplets": ("NewDroplets", 202, ref("CreatedDroplets")),
    "DELETE /v2/droplets": (None, 204, None),
    "POST /v2/droplets/actions": ("DropletAction", 201, record({"actions": several(ref("Action"))})),
    f"GET {DROPLET}": (None, 200, one("droplet", "Droplet")),
    f"DELETE {DROPLET}": (None, 204, None),
    f"GET {DROPLET}/actions": (None, 200, ACTIONS),
    f"POST {DROPLET}/actions": ("DropletAction", 201, ACTION),
    f"GET {DROPLET}/actions/{{action_id}}": (None, 200, ACTION),
    f"GET {DROPLET}/snapshots": (None, 200, page("snapshots", "DropletSnapshot")),
    f"GET {DESTROY}": (None, 200, ref("Associated")),
    f"GET {DESTROY}/status": (None, 200, ref("Destruction")),
    f"DELETE {DESTROY}/selective": ("Any", 202, None),
    f"DELETE {DESTROY}/dangerous": (None, 202, None),
    f"POST {DESTROY}/retry": (None, 202, None),
    "GET /v2/images": (None, 200, page("images", "Image")),
    "GET /v2/images/{image}": (None, 200, one("image", "Image")),
    "PUT /v2/images/{image}": ("NewName", 200, one("image", "Image")),
    "DELETE /v2/images/{image}": (None, 204, None),
    "GET /v2/images/{image}/actions": (None, 200, ACTIONS),
    "POST /v2/images/{image}/actions": ("ImageAction", 201, ACTION),
    "GET /v2/images/{image}/actions/{action_id}": (None, 200, ref("Action")),
    "GET /v2/projects": (None, 200, page("projects", "Project")),
    "POST /v2/projects": ("NewProject", 201, one("project", "Project")),
    "GET /v2/projects/{project}": (None, 200, one("project", "Project")),
    "GET /v2/projects/{project}/resources": (None, 200, page("resources", "Resource")),
    "POST /v2/projects/{project}/resources": ("Urns", 200, record({"resources": several(ref("Resource"))})),
    "GET /v2/snapshots": (None, 200, page("snapshots", "Snapshot")),
    "GET /v2/snapshots/{snapshot}": (None, 200, SNAPSHOT),
    "DELETE /v2/snapshots/{snapshot}": (None, 204, None),
    "GET /v2/tags": (None, 200, page("tags", "Tag")),
    "POST /v2/tags": ("NewTag", 201, one("tag", "Tag")),
    "GET /v2/tags/{tag}": (None, 200, one("tag", "Tag")),
    "DELETE /v2/tags/{tag}": (None, 204, None),
    "POST /v2/tags/{tag}/resources": ("Tagged", 204, None),
    "DELETE /v2/tags/{tag}/resources": ("Tagged", 204, None),
    "GET /v2/volumes": (None, 200, page("volumes", "Volume")),
    "POST /v2/volumes": ("NewVolume", 201, one("volume", "Volume")),
    "DELETE /v2/volumes": (None, 204, None),
    "GET /v2/volumes/snapshots/{snapshot}": (None, 200, SNAPSHOT),
    "DELETE /v2/volumes/snapshots/{snapshot}": (None, 204, None),
    "GET /v2/volumes/{volume}": (None, 200, one("volume", "Volume")),
    "DELETE /v2/volumes/{volume}": (None, 204, None),
    "GET /v2/volumes/{volume}/actions": (None, 200, ACTIONS),
    "POST /v2/volumes/{volume}/actions": ("VolumeAction", 202, ACTION),
    "GET /v2/volumes/{volume}/actions/{action_id}": (None, 200, ACTION),
    "GET /v2/volumes/{volume}/snapshots": (None, 200, page("snapshots", "Snapshot")),
    "POST /v2/volumes/{volume}/snapshots": ("NewVolumeSnapshot", 201, SNAPSHOT),
}


def description() -> dict[str, Any]:
    """The whole, as a document of OpenAPI 3.0."""
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        method, path = call.split()
        paths.setdefault(path, {})[method.lower()] = _operation(call, path)
    return {
        "openapi": "3.0.3",
        "info": {"title": "The calls that the emulated DigitalOcean answers", "version": "1"},
        "servers": [{"url": "https://api.digitalocean.com"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(call: str, path: str) -> dict[str, Any]:
    asked, status, answer = CALLS[call]
    is_list = answer is not None and "meta" in answer.get("properties", {})
    queries = QUERIES.get(call, {}) | (PAGED if is_list else {})
    parts = re.findall(r"{(\w+)}", path)
    parameters = [
        *({"name": part, "in": "path", "required": True, "schema": _part(part)} for part in parts),
        *({"name": name, "in": "query", "schema": schema} for name, schema in queries.items()),
    ]
    said = {str(status): _body("what was asked for", answer), "default": _body("a refusal", ref("Error"))}
    operation = {"parameters": parameters, "responses": said}
    return operation | ({"requestBody": {"required": True, **_content(ref(asked))}} if asked else {})


def _part(name: str) -> Schema:
    return COUNT if name in {"droplet_id", "action_id"} else TEXT


def _body(means: str, schema: Schema | None) -> dict[str, Any]:
    return {"description": means, **(_content(schema) if schema else {})}


def _content(schema: Schema) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}
