#include "http/page/page_routes.h"

#include <nlohmann/json.hpp>

#include "http/api/json_response.h"
#include "http/api/pdns_json.h"
#include "http/page/overview_json.h"
#include "http/page/page_files.h"
#include "http/page/zone_rows.h"

namespace pando::http {

using nlohmann::json;

namespace {

struct PageFile {
  std::string_view path;
  std::string_view content_type;
  const std::string_view& text;
};
constexpr PageFile kPageFiles[] = {{"/", "text/html; charset=utf-8", kPageHtml},
                                   {"/page.css", "text/css; charset=utf-8", kPageCss},
                                   {"/page.js", "text/javascript; charset=utf-8", kPageJs}};

/// Names of zones are strangers' text. If a name ever became markup, its scripts would not run, and
/// no data would go to another host.
constexpr std::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

Response with_security_fields(Response response) {
  response.fields.emplace_back("Content-Security-Policy", std::string(kContentPolicy));
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  response.fields.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return response;
}

Response json_or_error(const Result<json>& value) {
  return value ? json_response(200, *value) : error_response(value.error());
}

}  // namespace

std::optional<Response> PageRoutes::file(const Request& request) {
  for (const PageFile& file : kPageFiles) {
    if (request.path != file.path) continue;
    if (!request.is_safe())
      return with_security_fields(not_allowed("GET, HEAD", "GET and HEAD only"));
    Response response;
    response.content_type = file.content_type;
    response.body = file.text;
    return with_security_fields(std::move(response));
  }
  return std::nullopt;
}

Response PageRoutes::answer(const Request& request, const AccessKey& client) const {
  return with_security_fields(data(request, client));
}

Response PageRoutes::data(const Request& request, const AccessKey& client) const {
  if (!request.is_safe()) return not_allowed("GET, HEAD", "GET and HEAD only");
  const std::string_view what = std::string_view(request.path).substr(kPagePrefix.size());
  if (what == "overview") return overview(client);
  if (what == "zones") return zones(request, client);
  if (what == "zone") return zone(request, client);
  return error_response(404, "Not Found");
}

/// The numbers are about all zones: a key for some gets none.
Response PageRoutes::overview(const AccessKey& client) const {
  if (!client.zones.empty()) return json_response(200, {{"whole", false}});
  return json_response(200, overview_json(*collector_.observe()));
}

Response PageRoutes::zones(const Request& request, const AccessKey& client) const {
  const auto query = read_zone_query(request.query);
  if (!query) return error_response(query.error());
  return json_or_error(zone_rows_json(collector_, *query, client));
}

Response PageRoutes::zone(const Request& request, const AccessKey& client) const {
  const auto name = dns::Name::from_text(query_value(request.query, "name"));
  if (!name) return error_response(name.error());
  // As if it were not there: the names of others are no business of this client.
  if (!client.sees(*name)) return error_response(404, "Not Found");
  return json_or_error(zone_details_json(collector_, *name, client));
}

}  // namespace pando::http
