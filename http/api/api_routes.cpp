#include "http/api/api_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "http/api/pdns_json.h"

namespace pando::http {

using nlohmann::json;

namespace {

/// Bytes of a zone's content in memory, or of all zones in a list.
constexpr std::size_t kMostZoneBytes = std::size_t{64} << 20;
constexpr std::size_t kMostListed = 100'000;

Response json_response(unsigned status, const json& value) {
  Response response;
  response.status = status;
  response.content_type = "application/json";
  // Text of zones is printable ASCII; a stranger's octet in an error is replaced.
  response.body = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

Response error_response(unsigned status, std::string_view text) {
  return json_response(status, {{"error", text}});
}

/// PowerDNS tells a missing zone and a malformed name by these.
Response error_response(const Error& error) {
  switch (error.code) {
    case Errc::kNotFound:
      return error_response(404, "Not Found");
    case Errc::kInvalid:
      return error_response(422, error.text);
    default:
      return error_response(503, error.text);
  }
}

/// "a/b" in front of the first '/', which is removed with it.
std::string_view take_part(std::string_view& path) {
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(part.size() + 1, path.size()));
  return part;
}

}  // namespace

Response ApiRoutes::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD")
    return error_response(405, "this server's API reads only: change zones by DNS UPDATE");
  std::string_view path = std::string_view(request.path).substr(kApiPrefix.size());
  if (take_part(path) != "servers") return error_response(404, "Not Found");
  const std::string_view server = take_part(path);
  if (server.empty()) return json_response(200, json::array({server_json()}));
  if (server != kServerId) return error_response(404, "Not Found");
  const std::string_view kind = take_part(path);
  if (kind.empty()) return json_response(200, server_json());
  if (kind == "config" && path.empty()) return json_response(200, json::array());
  if (kind == "statistics" && path.empty())
    return json_response(200, statistics_json(*collector_.observe()));
  if (kind != "zones") return error_response(404, "Not Found");
  return path.empty() ? zones(request) : zone(path, request);
}

Response ApiRoutes::zones(const Request& request) const {
  const std::string only = query_value(request.query, "zone");
  if (!only.empty()) {
    const auto name = dns::Name::from_text(only);
    if (!name) return error_response(name.error());
    const auto content = collector_.read_zone(*name, kMostZoneBytes);
    if (!content && content.error().code == Errc::kNotFound)
      return json_response(200, json::array());
    if (!content) return error_response(content.error());
    return json_response(200, json::array({zone_json(*content, {.without = true})}));
  }
  const auto all = collector_.read_zones(kMostListed);
  if (!all) return error_response(all.error());
  json list = json::array();
  for (const ZoneFacts& facts : *all) list.push_back(zone_json(facts));
  return json_response(200, list);
}

Response ApiRoutes::zone(std::string_view id, const Request& request) const {
  const std::string_view first = take_part(id);
  const bool as_text = id == "export";
  if (!id.empty() && !as_text) return error_response(404, "Not Found");
  const auto name = name_of_id(first);
  if (!name) return error_response(name.error());
  const auto content = collector_.read_zone(*name, kMostZoneBytes);
  if (!content) return error_response(content.error());
  if (as_text) {
    Response response;
    response.body = zone_text(*content);
    return response;
  }
  RRsetFilter filter;
  filter.without = query_value(request.query, "rrsets") == "false";
  filter.name = query_value(request.query, "rrset_name");
  filter.type = query_value(request.query, "rrset_type");
  if (!filter.name.empty() && !filter.name.ends_with('.')) filter.name += '.';
  return json_response(200, zone_json(*content, filter));
}

}  // namespace pando::http
