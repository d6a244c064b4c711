#include "http/routes.h"

#include "http/metrics/write_metrics.h"
#include "ipc/log.h"

namespace pando::http {

namespace {

/// Clients of PowerDNS find the versions of its API, and the servers of one, from here.
std::string_view known_paths(std::string_view path) {
  if (path == "/api") return R"([{"version":1,"url":"/api/v1"}])";
  if (path == "/api/v1") return R"([{"server_url":"/api/v1/servers{/server}","api_features":[]}])";
  return {};
}

}  // namespace

Response Routes::answer(const Request& request) const {
  const auto settings = settings_.now();
  const Access& access = settings->access;
  if (!access.is_addressed_by(request)) return Access::misdirected();
  // The page asks people for a key, so its files are there without one.
  if (auto file = PageRoutes::file(request)) return *std::move(file);
  // For all else the key comes first: a client without one does not learn what there is.
  const AccessKey* client = access.key_of(request);
  if (client == nullptr) return Access::refusal(request);
  if (request.path.starts_with(kApiPrefix))
    return ApiRoutes(collector_, writer_, settings->known).answer(request, *client);
  if (request.path.starts_with(kPagePrefix)) return page_.answer(request, *client);
  if (const auto paths = known_paths(request.path); !paths.empty()) {
    Response response;
    response.content_type = "application/json";
    response.body = paths;
    return response;
  }
  if (request.path != "/metrics")
    return text_response(404, "nothing is here; metrics are at /metrics");
  if (!request.is_safe()) {
    Response response = text_response(405, "GET and HEAD only");
    response.fields.emplace_back("Allow", "GET, HEAD");  // RFC 9110 §15.5.6
    return response;
  }
  // Metrics are of all zones.
  if (!client->zones.empty()) return text_response(403, "this key is for some zones only");
  return metrics(request);
}

bool Routes::may_send_much(const Request& header) const {
  const auto settings = settings_.last();
  const AccessKey* client = settings->access.key_of(header);
  if (client == nullptr) return false;
  return (header.method == "PATCH" && client->role >= Role::kWrite) ||
         (header.method == "POST" && client->role >= Role::kAdmin);
}

Response Routes::metrics(const Request& request) const {
  const auto observed = collector_.observe();
  for (const std::string& problem : observed->problems)
    log::debug("metrics_incomplete", "reason", problem);
  const Format format = format_for(request.accept);
  Exposition out(format);
  write_metrics(out, *observed);
  Response response;
  response.content_type = content_type(format);
  response.body = out.finish();
  return response;
}

}  // namespace pando::http
