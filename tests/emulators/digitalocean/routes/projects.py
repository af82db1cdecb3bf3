"""Projects: droplets are assigned to them, nothing else."""

from tests.emulators.digitalocean.catalog import Json
from tests.emulators.digitalocean.replies import Reply, not_found, paged
from tests.emulators.digitalocean.resources import iso
from tests.emulators.digitalocean.routing import Call, route
from tests.emulators.digitalocean.world import PROJECT_ID


def _projects(call: Call) -> dict[str, Json]:
    if not call.state.projects:
        _add(call, PROJECT_ID, {"name": "first-project", "is_default": True})
    return call.state.projects


def _add(call: Call, project_id: str, asked: Json) -> Json:
    project: Json = {
        "id": project_id,
        "owner_uuid": "99525febec065ca37b2ffe4f852fd2b2581895e7",
        "owner_id": 258992,
        "name": asked.get("name", ""),
        "description": asked.get("description", ""),
        "purpose": asked.get("purpose", "Service or API"),
        "environment": asked.get("environment", "Development"),
        "is_default": asked.get("is_default", False),
        "created_at": iso(call.now),
        "updated_at": iso(call.now),
    }
    call.state.projects[project_id] = project
    return project


@route("GET", "/v2/projects", "project:read")
def projects(call: Call) -> Reply:
    return paged("projects", list(_projects(call).values()), call.request, call.base)


@route("POST", "/v2/projects", "project:create")
def create(call: Call) -> Reply:
    _projects(call)
    return Reply(201, {"project": _add(call, call.state.new_uuid(), call.body())})


def _project_id(call: Call) -> str:
    asked = PROJECT_ID if call.parts["project"] == "default" else call.parts["project"]
    if asked not in _projects(call):
        raise not_found()
    return asked


@route("GET", "/v2/projects/{project}", "project:read")
def show(call: Call) -> Reply:
    return Reply(200, {"project": _projects(call)[_project_id(call)]})


@route("GET", "/v2/projects/{project}/resources", "project:read")
def resources(call: Call) -> Reply:
    project_id = _project_id(call)
    urns = [urn for urn, assigned in call.state.assigned.items() if assigned == project_id]
    return paged("resources", [_resource(call, urn, "ok") for urn in urns], call.request, call.base)


@route("POST", "/v2/projects/{project}/resources", "project:assign_resource")
def assign(call: Call) -> Reply:
    project_id = _project_id(call)
    shown = []
    for urn in call.body().get("resources") or []:
        said = "already_assigned" if call.state.assigned.get(urn) == project_id else "assigned"
        call.state.assigned[urn] = project_id
        shown.append(_resource(call, urn, said))
    return Reply(200, {"resources": shown})


def _resource(call: Call, urn: str, status: str) -> Json:
    kind, _colon, resource = urn.removeprefix("do:").partition(":")
    href = f"{call.base}/v2/{kind}s/{resource}"
    return {"urn": urn, "assigned_at": iso(call.now), "links": {"self": href}, "status": status}
