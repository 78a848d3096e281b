"""As much of a Kubernetes API server as kubectl and Helm need to install a chart: discovery, objects that are kept and
checked against the schemas of Kubernetes, and workloads that are ready at once. No pod ever runs."""

import json
import re
import threading
import time
import uuid
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate
import yaml

import protobuf

VERSION = "1.37"
#: Group and version to resources: plural, kind, whether in a namespace.
RESOURCES = {
    "v1": [
        ("namespaces", "Namespace", False), ("pods", "Pod", True), ("secrets", "Secret", True),
        ("configmaps", "ConfigMap", True), ("services", "Service", True), ("serviceaccounts", "ServiceAccount", True),
        ("events", "Event", True),
    ],
    "apps/v1": [
        ("deployments", "Deployment", True), ("statefulsets", "StatefulSet", True), ("replicasets", "ReplicaSet", True),
    ],
    "batch/v1": [("jobs", "Job", True)],
    "policy/v1": [("poddisruptionbudgets", "PodDisruptionBudget", True)],
    "autoscaling/v2": [("horizontalpodautoscalers", "HorizontalPodAutoscaler", True)],
    "networking.k8s.io/v1": [("networkpolicies", "NetworkPolicy", True)],
}  # fmt: skip
PATH = re.compile(
    r"/apis?/(?P<version>[\w.-]+/v\w+|v1)(?:/namespaces/(?P<namespace>[\w.-]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[\w.-]+))?(?:/(?P<part>\w+))?$"
)


class Refusal(Exception):
    def __init__(self, code: int, reason: str, message: str):
        super().__init__(message)
        self.body = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message, "metadata": {},
        }  # fmt: skip


def merged(old: object, new: object) -> object:
    """JSON merge patch (RFC 7396); lists are replaced."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    made = dict(old)
    for key, value in new.items():
        if value is None:
            made.pop(key, None)
        elif not key.startswith("$"):
            made[key] = merged(made.get(key), value)
    return made


class Store:
    """The objects, by version, plural, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str, str], dict] = {}
        self.changes: list[tuple[str, tuple[str, str, str, str], dict]] = []
        self.lock = threading.Condition()
        self.revision = 0

    def put(self, key: tuple[str, str, str, str], given: dict) -> dict:
        version, plural, namespace, name = key
        kind = next(kind for other, kind, _ in RESOURCES[version] if other == plural)
        made = {**deepcopy(given), "apiVersion": version, "kind": kind}
        made.pop("status", None)
        metadata = made.setdefault("metadata", {})
        metadata.pop("managedFields", None)
        kubernetes_validate.validate(made, VERSION, strict=True)
        if namespace and ("v1", "namespaces", "", namespace) not in self.objects:
            raise Refusal(404, "NotFound", f'namespaces "{namespace}" not found')
        with self.lock:
            self.revision += 1
            old = self.objects.get(key)
            kept = old["metadata"] if old else {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
            same = bool(old) and {**old, "metadata": 0, "status": 0} == {**made, "metadata": 0, "status": 0}
            metadata |= {name: kept[name] for name in ("uid", "creationTimestamp")}
            metadata["resourceVersion"] = str(self.revision)
            metadata["generation"] = kept.get("generation", 0) + (not same)
            if namespace:
                metadata["namespace"] = namespace
            metadata["name"] = name
            made |= self._status(made)
            self.objects[key] = made
            self.changes.append(("MODIFIED" if old else "ADDED", key, made))
            self.lock.notify_all()
        return made

    @staticmethod
    def _status(made: dict) -> dict:
        generation = made["metadata"]["generation"]
        match made["kind"]:
            case "Deployment" | "StatefulSet":
                count = made["spec"].get("replicas", 1)
                names = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas")
                conditions = [
                    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                ]
                return {
                    "status": dict.fromkeys(names, count) | {"observedGeneration": generation, "conditions": conditions}
                }
            case "Pod":
                return {"status": {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}}
            case "Job":
                return {"status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}}
            case "Namespace":
                return {"status": {"phase": "Active"}}
            case "PodDisruptionBudget":
                return {"status": {"observedGeneration": generation, "currentHealthy": 2, "desiredHealthy": 1}}
        return {}

    def remove(self, key: tuple[str, str, str, str]) -> dict:
        with self.lock:
            gone = self.objects.pop(key)
            self.revision += 1
            self.changes.append(("DELETED", key, gone))
            self.lock.notify_all()
        return gone


def chosen(made: dict, query: dict[str, list[str]]) -> bool:
    """Whether an object is what labelSelector and fieldSelector ask for."""
    labels = made["metadata"].get("labels", {})
    for term in filter(None, query.get("labelSelector", [""])[0].split(",")):
        name, equals, value = re.match(r"([\w./-]+)\s*(!?=?=?)\s*(.*)", term).groups()
        if (labels.get(name) == value) == equals.startswith("!") if equals else name not in labels:
            return False
    fields = {"metadata.name": made["metadata"]["name"], "metadata.namespace": made["metadata"].get("namespace", "")}
    terms = filter(None, query.get("fieldSelector", [""])[0].split(","))
    return all(fields.get(name) == value for name, _, value in (term.partition("=") for term in terms))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, body: dict | str, code: int = 200) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(length)
        body = protobuf.read(data) if data.startswith(protobuf.MAGIC) else yaml.safe_load(data) if data else None
        place = urlsplit(self.path)
        try:
            if self.command == "GET" and (found := self.discovery(place.path)) is not None:
                self.answer(found)
                return
            self.on_objects(place.path, parse_qs(place.query), body)
        except Refusal as refusal:
            self.answer(refusal.body, refusal.body["code"])
        except kubernetes_validate.ValidationError as error:
            self.answer(Refusal(422, "Invalid", str(error)).body, 422)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    @staticmethod
    def discovery(path: str) -> dict | None:
        if path == "/version":
            major, minor = VERSION.split(".")
            return {"major": major, "minor": minor, "gitVersion": f"v{VERSION}.0", "platform": "linux/amd64"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            groups = [
                {"name": group, "versions": [wanted], "preferredVersion": wanted}
                for group, wanted in (
                    (each.split("/")[0], {"groupVersion": each, "version": each.split("/")[1]})
                    for each in RESOURCES
                    if "/" in each
                )
            ]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        version = re.sub(r"^/apis?/", "", path)
        if version in RESOURCES:
            verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
            resources = [
                {"name": plural, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind, "verbs": verbs}
                for plural, kind, namespaced in RESOURCES[version]
            ]
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
        if path == "/openapi/v3":
            places = [f"apis/{each}" if "/" in each else f"api/{each}" for each in RESOURCES]
            return {"paths": {each: {"serverRelativeURL": f"/openapi/v3/{each}"} for each in places}}
        if version := re.sub(r"^/openapi/v3/apis?/", "", path) if path.startswith("/openapi/v3/") else None:
            return Handler.description(version)
        return None

    @staticmethod
    def description(version: str) -> dict:
        """Tells clients that the server looks at the fields itself."""
        group, _, number = version.rpartition("/")
        paths = {}
        for plural, kind, _ in RESOURCES[version]:
            paths[f"/{plural}/{{name}}"] = {
                "patch": {
                    "x-kubernetes-group-version-kind": {"group": group, "version": number, "kind": kind},
                    "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                    "responses": {},
                }
            }
        return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION}, "paths": paths}

    def on_objects(self, path: str, query: dict[str, list[str]], body: dict | None) -> None:
        match = PATH.match(path)
        # A namespace is an object itself.
        if own := re.fullmatch(r"/api/v1/namespaces/([\w.-]+)", path):
            key = ("v1", "namespaces", "", own[1])
            part = None
        elif match and any(match["plural"] == plural for plural, _, _ in RESOURCES.get(match["version"], [])):
            key = (match["version"], match["plural"], match["namespace"] or "", match["name"] or "")
            part = match["part"]
        else:
            raise Refusal(404, "NotFound", f"the server could not find {path}")
        version, plural, namespace, name = key
        store = self.store
        if self.command == "POST":
            key = (version, plural, namespace, body["metadata"]["name"])
            if key in store.objects:
                raise Refusal(409, "AlreadyExists", f'{plural} "{key[3]}" already exists')
            self.answer(store.put(key, body), 201)
        elif not name:
            self.list_or_watch(key, query)
        elif self.command == "PATCH" and "apply" in self.headers["Content-Type"]:
            self.answer(store.put(key, body))
        elif key not in store.objects:
            raise Refusal(404, "NotFound", f'{plural} "{name}" not found')
        elif part == "log":
            self.answer("the log of a pod that never ran\n")
        elif self.command == "PATCH":
            self.answer(store.put(key, merged(store.objects[key], body)))
        elif self.command == "PUT":
            self.answer(store.put(key, body))
        elif self.command == "DELETE":
            self.answer(store.remove(key))
        else:
            self.answer(store.objects[key])

    def list_or_watch(self, key: tuple[str, str, str, str], query: dict[str, list[str]]) -> None:
        def is_asked(other: tuple[str, str, str, str], made: dict) -> bool:
            return other[:2] == key[:2] and key[2] in ("", other[2]) and chosen(made, query)

        store = self.store
        with store.lock:
            items = [made for other, made in store.objects.items() if is_asked(other, made)]
            seen = len(store.changes)
        kind = next(kind for plural, kind, _ in RESOURCES[key[0]] if plural == key[1])
        if query.get("watch") not in (["true"], ["1"]):
            listed = {
                "kind": f"{kind}List", "apiVersion": key[0], "metadata": {"resourceVersion": str(store.revision)},
                "items": items,
            }  # fmt: skip
            self.answer(listed)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

        def tell(what: str, made: dict) -> None:
            self.wfile.write(json.dumps({"type": what, "object": made}).encode() + b"\n")

        deadline = time.monotonic() + 20
        try:
            for made in items:
                tell("ADDED", made)
            if query.get("sendInitialEvents") == ["true"]:
                end = {"resourceVersion": str(store.revision), "annotations": {"k8s.io/initial-events-end": "true"}}
                tell("BOOKMARK", {"kind": kind, "apiVersion": key[0], "metadata": end})
            while time.monotonic() < deadline:
                with store.lock:
                    store.lock.wait(1)
                    news = store.changes[seen:]
                    seen += len(news)
                for what, other, made in news:
                    if is_asked(other, made):
                        tell(what, made)
        except OSError:
            pass


class KubernetesAPI:
    """The server in a thread; `with` starts and ends it."""

    def __enter__(self):
        self.store = Store()
        handler = type("OwnHandler", (Handler,), {"store": self.store})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def kubeconfig(self) -> str:
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        return yaml.safe_dump(
            {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context],
             "users": [{"name": "u", "user": {}}], "current-context": "c"}
        )  # fmt: skip

    def get(self, kind: str, name: str, namespace: str = "push") -> dict:
        (found,) = [
            made
            for key, made in self.store.objects.items()
            if made["kind"] == kind and key[3] == name and key[2] in ("", namespace)
        ]
        return found
