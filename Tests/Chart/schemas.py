"""The custom resources that the chart makes, as far as it uses them: from the definitions of the Prometheus Operator
(monitoring.coreos.com) and of KEDA (keda.sh)."""


def _strict(required: list[str] | None = None, **properties: dict) -> dict:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(properties) if required is None else required,
    }


def _list(items: dict) -> dict:
    return {"type": "array", "minItems": 1, "items": items}


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
DURATION = {
    "type": "string",
    "pattern": "^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$",
}
NUMBER = {"type": "integer", "minimum": 0}
RELABELING = _strict(
    [], action=TEXT, regex=TEXT, sourceLabels=_list(TEXT), targetLabel=TEXT, replacement=TEXT, separator=TEXT
)
ENDPOINT = _strict(
    ["port", "path"],
    port=TEXT,
    path=TEXT,
    interval=DURATION,
    scrapeTimeout=DURATION,
    relabelings=_list(RELABELING),
    metricRelabelings=_list(RELABELING),
)
SELECTOR = _strict(matchLabels=TEXTS)
NAMESPACES = _strict(matchNames=_list(TEXT))
RULE = {
    **_strict(["expr"], alert=TEXT, record=TEXT, expr=TEXT, labels=TEXTS, annotations=TEXTS, **{"for": DURATION}),
    "oneOf": [{"required": ["alert"]}, {"required": ["record"]}],
}
TRIGGER = _strict(
    ["type", "metadata"], type=TEXT, metadata=TEXTS, authenticationRef=_strict(["name"], name=TEXT, kind=TEXT)
)

SPECIFICATIONS = {
    "ServiceMonitor": _strict(selector=SELECTOR, namespaceSelector=NAMESPACES, endpoints=_list(ENDPOINT)),
    "PodMonitor": _strict(selector=SELECTOR, namespaceSelector=NAMESPACES, podMetricsEndpoints=_list(ENDPOINT)),
    "PrometheusRule": _strict(groups=_list(_strict(name=TEXT, rules=_list(RULE)))),
    "ScaledObject": _strict(
        ["scaleTargetRef", "triggers"],
        scaleTargetRef=_strict(apiVersion=TEXT, kind=TEXT, name=TEXT),
        minReplicaCount=NUMBER,
        maxReplicaCount=NUMBER,
        pollingInterval=NUMBER,
        cooldownPeriod=NUMBER,
        advanced={"type": "object"},
        triggers=_list(TRIGGER),
    ),
}

VERSIONS = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
    "ScaledObject": "keda.sh/v1alpha1",
}
