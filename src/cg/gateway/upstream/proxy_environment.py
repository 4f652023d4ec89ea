"""Which proxy a URL is reached through: by given variables, or by those of this process and its system."""

import urllib.request
from collections.abc import Mapping
from urllib.parse import SplitResult


def proxy_for(parts: SplitResult, environment: Mapping[str, str]) -> str | None:
    """The proxy that the variables name for a URL, by the rules that other programs follow: lower case first,
    `all_proxy` last, `no_proxy` over both."""
    proxies = _proxies(environment)
    host = parts.hostname or ""
    named = f"{host}:{parts.port}" if parts.port else host
    if urllib.request.proxy_bypass_environment(named, proxies):  # type: ignore[attr-defined]
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The proxy variables by scheme, as `urllib.request.getproxies_environment` reads them from this process."""
    by_scheme: dict[str, str] = {}
    for is_spelled in (str.isupper, str.islower):  # later ones win: the lower-case spelling
        for variable, value in environment.items():
            scheme = variable.lower().removesuffix("_proxy")
            if variable.lower().endswith("_proxy") and scheme and is_spelled(variable):
                by_scheme[scheme] = value
    if "REQUEST_METHOD" in environment and "http_proxy" not in environment:
        by_scheme.pop("http", None)  # under CGI, HTTP_PROXY is a header of the client
    return {scheme: value for scheme, value in by_scheme.items() if value}


def system_proxy(scheme: str, host: str, port: int | None) -> str | None:
    """The proxy that this process's environment, or its system, names for a URL; None for none."""
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{host}:{port}" if port else host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
