"""SelfSubjectAccessReviews. The only user may do everything, so each is allowed."""

from __future__ import annotations

from vgpuctl.sim.kube.api import errors, protobuf
from vgpuctl.sim.kube.api.request import Reply, Request

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def answer(request: Request) -> Reply | None:
    """Return None if the path is another one."""
    if request.path.rstrip("/") != _PATH:
        return None
    if request.method != "POST":
        raise errors.method_not_allowed()
    binary = request.content_type.split(";")[0].strip() == protobuf.MEDIA_TYPE
    review = protobuf.decoded(request.body) if binary else request.json()
    if not isinstance(review, dict) or not isinstance(review.get("spec"), dict):
        raise errors.bad_request("json: cannot unmarshal into Go struct field SelfSubjectAccessReview.spec")
    names = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    return Reply(201, names | {"spec": review["spec"], "status": {"allowed": True}})
