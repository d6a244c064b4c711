#include "http/api/api_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/unix_time.h"
#include "http/api/cryptokeys.h"
#include "http/api/json_response.h"
#include "http/api/new_zone.h"
#include "http/api/search_data.h"
#include "http/api/seen_zones.h"
#include "ipc/log.h"

namespace pando::http {

using nlohmann::json;

namespace {

/// Bytes of a zone's content in memory.
constexpr std::size_t kMaxZoneBytes = std::size_t{64} << 20;

constexpr std::string_view kNotHere = "a zone is changed by PATCH or PUT";
constexpr std::string_view kNoKeyChange =
    "keys are made by the server: PUT the zone with 'dnssec': true; see 'pandoctl dnssec'";

Response denied() { return error_response(403, "this key's role does not allow it"); }
Response not_found() { return error_response(404, "Not Found"); }
Response no_content() { return {.status = 204}; }

/// "a/b" in front of the first '/', which is removed with it.
std::string_view take_part(std::string_view& path) {
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(part.size() + 1, path.size()));
  return part;
}

Response result_response(const Status& done, std::string_view text) {
  return done ? json_response(200, {{"result", text}}) : error_response(done.error());
}

/// The request is too large.
Response failed_change(const Error& error) {
  return error.code == Errc::kFull ? error_response(413, error.text) : error_response(error);
}

json tsig_key_json(const TsigKeyName& key) {
  return {{"id", zone_id(key.name)},
          {"name", key.name.substr(0, key.name.size() - 1)},
          {"algorithm", key.algorithm},
          {"key", ""},
          {"type", "TSIGKey"}};
}

/// Nothing is cached: clients flush after a change since a PowerDNS may serve an older answer.
Response flushed_cache() {
  return json_response(200, {{"count", 0}, {"result", "Flushed cache."}});
}

}  // namespace

Response ApiRoutes::answer(const Request& request, const AccessKey& client) const {
  std::string_view path = std::string_view(request.path).substr(kApiPrefix.size());
  if (take_part(path) != "servers") return not_found();
  const std::string_view id = take_part(path);
  if (!id.empty() && id != kServerId) return not_found();
  if (path.starts_with("zones/") && path != "zones/") return zone(path.substr(6), request, client);
  if (request.is_safe())
    return id.empty() ? json_response(200, json::array({server_json()}))
                      : server(path, request, client);
  if (client.role < Role::kWrite) return denied();
  if (path == "cache/flush" && request.method == "PUT") return flushed_cache();
  if (path != "zones") return not_allowed("GET, HEAD", "this can only be read");
  if (request.method == "POST") return create(request, client);
  return not_allowed("GET, HEAD, POST", "a list of zones cannot be changed as one");
}

Response ApiRoutes::server(std::string_view path, const Request& request,
                           const AccessKey& client) const {
  const std::string_view kind = take_part(path);
  if (kind == "tsigkeys" || (kind == "statistics" && path.empty())) {
    if (!client.zones.empty()) return denied();  // keys and numbers of other zones, too
    return kind == "tsigkeys" ? tsig_keys(path) : statistics(request);
  }
  if (!path.empty()) return not_found();
  if (kind.empty()) return json_response(200, server_json());
  if (kind == "zones") return zones(request, client);
  if (kind == "search-data") return search(request, client);
  if (kind == "config") return json_response(200, json::array());
  return not_found();
}

Response ApiRoutes::zones(const Request& request, const AccessKey& client) const {
  const std::string only = query_value(request.query, "zone");
  if (!only.empty()) {
    const auto name = dns::Name::from_text(only);
    if (!name) return error_response(name.error());
    if (!client.sees(*name)) return json_response(200, json::array());
    const auto content = collector_.read_zone(*name, kMaxZoneBytes);
    if (!content && content.error().code == Errc::kNotFound)
      return json_response(200, json::array());
    if (!content) return error_response(content.error());
    return json_response(200, json::array({zone_object(*content, {.without = true})}));
  }
  // One response has all zones, because PowerDNS's API has no pages.
  return array_response([seen = SeenZones(collector_, client)](json& list) mutable -> Result<bool> {
    const auto zones = seen.next();
    if (!zones) return tl::unexpected<Error>(zones.error());
    for (const ZoneFacts& facts : *zones) list.push_back(zone_json(facts));
    return !seen.at_end();
  });
}

Response ApiRoutes::zone(std::string_view path, const Request& request,
                         const AccessKey& client) const {
  const auto name = name_of_id(take_part(path));
  if (!name) return error_response(name.error());
  // A client does not learn whether a zone of others exists. Clients that look for the zone of a
  // name go on with the name's parent.
  if (!client.sees(*name)) return not_found();
  const ZoneRequest wanted{request, *name, path, client};
  if (request.is_safe()) return read(wanted);
  const bool removes = path.empty() && request.method == "DELETE";
  const bool administers = removes || (path.empty() && request.method == "PUT") ||
                           path == "cryptokeys" || path.starts_with("cryptokeys/");
  if (client.role < (administers ? Role::kAdmin : Role::kWrite)) return denied();
  Response response = removes ? remove(wanted) : change(wanted);
  if (response.status < 300)
    log::info("http_change", "key", client.name, "zone", to_text(*name), "method", request.method,
              "what", !path.empty() ? path : administers ? "zone" : "rrsets");
  return response;
}

/// A secondary zone that waits for its first transfer has no records yet, and is no error.
Result<ZoneContent> ApiRoutes::content_of(const dns::Name& zone) const {
  auto content = collector_.read_zone(zone, kMaxZoneBytes);
  if (content || content.error().code != Errc::kUnsupported) return content;
  const auto facts = collector_.read_facts(zone);
  if (!facts || !facts->secondary) return content;
  ZoneContent empty;
  empty.apex = to_text(zone);
  empty.secondary = true;
  empty.last_check = facts->last_ok;
  return empty;
}

std::optional<ipc::ZoneRow> ApiRoutes::row_of(std::string_view zone) const {
  auto rows = collector_.ask_zones({std::string(zone)});
  if (!rows || rows->empty()) return std::nullopt;
  return std::move(rows->front());
}

/// Only the manager knows a secondary zone's primaries, and who signs a zone. Without a manager the
/// response has no primaries.
json ApiRoutes::zone_object(const ZoneContent& content, const RRsetFilter& filter) const {
  json object = zone_json(content, filter);
  if (const auto row = row_of(content.apex)) {
    if (content.secondary) object["masters"] = masters_json(row->primaries);
    if (!row->dnssec.empty()) {
      object["dnssec"] = true;
      object["presigned"] = false;
    }
  }
  return object;
}

/// The keys of a zone that somebody else signs are not this server's.
Result<json> ApiRoutes::keys_of(const dns::Name& zone) const {
  const auto row = row_of(to_text(zone));
  if (!row || row->dnssec.empty()) return json::array();
  const auto apex = collector_.read_zone_part(zone, {});
  if (!apex) return tl::unexpected<Error>(apex.error());
  return cryptokeys_json(zone, apex->rrsets);
}

/// PowerDNS's panels switch signing on by a new key (201). Other keys are the operator's.
Response ApiRoutes::change_keys(const ZoneRequest& wanted, std::string_view id) const {
  if (wanted.request.method != "POST" || !id.empty()) return error_response(422, kNoKeyChange);
  if (auto checked = check_new_key(wanted.request.body); !checked)
    return failed_change(checked.error());
  const auto row = row_of(to_text(wanted.zone));
  const auto facts = collector_.read_facts(wanted.zone);
  if (!facts) return error_response(facts.error());
  if ((row && !row->dnssec.empty()) || facts->has_denial) return error_response(422, kNoKeyChange);
  if (auto done = set_signed(wanted.zone, true); !done) return failed_change(done.error());
  return first_key(wanted.zone);
}

/// The key is published with the signed zone, which takes a moment. Large zones take longer, and
/// their response has the key without its data: it is listed later.
Response ApiRoutes::first_key(const dns::Name& zone) const {
  constexpr std::chrono::milliseconds kStep{20}, kMaxWait{2000};
  for (auto waited = kStep; waited <= kMaxWait; waited += kStep) {
    const auto keys = keys_of(zone);
    if (keys && !keys->empty()) return json_response(201, keys->front());
    std::this_thread::sleep_for(kStep);
  }
  return json_response(
      201, {{"type", "Cryptokey"}, {"keytype", "csk"}, {"active", true}, {"published", true}});
}

Response ApiRoutes::cryptokeys(const dns::Name& zone, std::string_view id) const {
  const auto keys = keys_of(zone);
  if (!keys) return error_response(keys.error());
  if (id.empty()) return json_response(200, *keys);
  for (const json& key : *keys)
    if (fmt::format("{}", key["id"].get<std::uint64_t>()) == id) return json_response(200, key);
  return not_found();
}

Response ApiRoutes::read(const ZoneRequest& wanted) const {
  const bool whole = wanted.rest.empty() || wanted.rest == "export";
  const auto content =
      whole ? content_of(wanted.zone) : collector_.read_zone(wanted.zone, 0);
  const bool too_large = !content && content.error().code == Errc::kFull;
  if (!content && (whole || !too_large)) return error_response(content.error());
  if (wanted.rest == "metadata") return json_response(200, json::array());
  std::string_view rest = wanted.rest;
  const std::string_view kind = take_part(rest);
  if (kind == "cryptokeys") return cryptokeys(wanted.zone, rest);
  if (kind == "metadata")
    return json_response(200,
                         {{"kind", rest}, {"metadata", json::array()}, {"type", "Metadata"}});
  if (!whole) return not_found();
  if (wanted.rest == "export") {
    Response response;
    response.body = zone_text(*content);
    return response;
  }
  RRsetFilter filter;
  filter.without = query_value(wanted.request.query, "rrsets") == "false";
  filter.name = query_value(wanted.request.query, "rrset_name");
  filter.type = query_value(wanted.request.query, "rrset_type");
  if (!filter.name.empty() && !filter.name.ends_with('.')) filter.name += '.';
  return json_response(200, zone_object(*content, filter));
}

Response ApiRoutes::change(const ZoneRequest& wanted) const {
  const std::string& method = wanted.request.method;
  if (wanted.rest.empty() && method == "PUT") return put(wanted);
  if (wanted.rest.empty())
    return method == "PATCH" ? patch(wanted)
                             : not_allowed("GET, HEAD, PATCH, PUT, DELETE", kNotHere);
  if (wanted.rest == "export") return not_allowed("GET, HEAD", "an export is read");
  std::string_view rest = wanted.rest;
  const std::string_view kind = take_part(rest);
  if (kind == "metadata") return not_allowed("GET, HEAD", "zones have none of these here");
  if (kind == "cryptokeys") return change_keys(wanted, rest);
  if (wanted.rest != "notify" && wanted.rest != "axfr-retrieve") return not_found();
  if (method != "PUT") return not_allowed("PUT", "this is done by PUT");
  if (wanted.rest == "notify")
    return result_response(writer_.notify(wanted.zone), "Notification queued");
  return result_response(
      writer_.retransfer(wanted.zone),
      fmt::format("Added retrieval request for '{}'", to_text(wanted.zone)));
}

Response ApiRoutes::create(const Request& request, const AccessKey& client) const {
  if (client.role < Role::kAdmin) return denied();
  auto zone = read_new_zone(request.body, known_.remotes, unix_seconds());
  if (!zone) return failed_change(zone.error());
  zone->template_name = known_.zone_template;
  if (!client.sees(zone->name)) return denied();
  if (auto created = writer_.create(*zone); !created) return failed_change(created.error());
  log::info("http_change", "key", client.name, "zone", to_text(zone->name), "method", "POST",
            "what", "zone");
  if (const auto content = content_of(zone->name))
    return json_response(201, zone_object(*content, {}));
  ZoneContent empty;  // the zone exists, even if it cannot be read now
  empty.apex = to_text(zone->name);
  empty.secondary = !zone->primaries.empty();
  return json_response(201, zone_object(empty, {}));
}

Response ApiRoutes::put(const ZoneRequest& wanted) const {
  const auto facts = collector_.read_facts(wanted.zone);
  if (!facts) return error_response(facts.error());
  const auto change =
      read_zone_change(wanted.request.body, wanted.zone, facts->secondary, known_.remotes);
  if (!change) return failed_change(change.error());
  if (change->primaries)
    if (auto done = writer_.set_primaries(wanted.zone, *change->primaries); !done)
      return failed_change(done.error());
  if (change->is_signed)
    if (auto done = set_signed(wanted.zone, *change->is_signed); !done)
      return failed_change(done.error());
  return no_content();
}

/// Panels repeat what they have read. A zone that somebody else signs stays so.
Status ApiRoutes::set_signed(const dns::Name& zone, bool is_signed) const {
  const std::string name = to_text(zone);
  const auto rows = collector_.ask_zones({name});
  if (!rows) return pass(rows);
  const bool is_signed_here = !rows->empty() && !rows->front().dnssec.empty();
  if (is_signed && !is_signed_here) {
    const auto facts = collector_.read_facts(zone);
    if (!facts) return pass(facts);
    return facts->has_denial ? Status() : writer_.sign(zone);
  }
  if (!is_signed && is_signed_here)
    return fail(Errc::kInvalid,
                "{} is signed, and its parent has to remove its DS records first: 'pandoctl dnssec "
                "unsign {}' begins that",
                name, name);
  return {};
}

Response ApiRoutes::remove(const ZoneRequest& wanted) const {
  const auto removed = writer_.remove(wanted.zone);
  return removed ? no_content() : failed_change(removed.error());
}

Response ApiRoutes::patch(const ZoneRequest& wanted) const {
  const auto changes = read_patch(wanted.request.body, wanted.zone);
  if (!changes) return failed_change(changes.error());
  const auto done =
      writer_.apply(wanted.zone, *changes, {wanted.client.name, wanted.request.client});
  if (!done && done.error().code == Errc::kFull) return error_response(507, done.error().text);
  if (!done) return error_response(done.error());
  Response response = no_content();
  response.fields.emplace_back("X-PDNS-Old-Serial", fmt::format("{}", done->from));
  response.fields.emplace_back("X-PDNS-New-Serial", fmt::format("{}", done->to));
  return response;
}

Response ApiRoutes::search(const Request& request, const AccessKey& client) const {
  const auto query = read_search(request.query);
  if (!query) return error_response(query.error());
  return array_response(SearchWalk(collector_, *query, client));
}

Response ApiRoutes::statistics(const Request& request) const {
  const json all = statistics_json(*collector_.observe());
  const std::string only = query_value(request.query, "statistic");
  if (only.empty()) return json_response(200, all);
  for (const json& item : all)
    if (item["name"] == only) return json_response(200, json::array({item}));
  return error_response(422, "Unknown statistic name");
}

Response ApiRoutes::tsig_keys(std::string_view id) const {
  if (!id.empty()) {
    const auto name = name_of_id(id);
    if (!name) return error_response(name.error());
    for (const TsigKeyName& key : known_.keys)
      if (dns::Name::from_text(key.name) == *name) return json_response(200, tsig_key_json(key));
    return not_found();
  }
  json list = json::array();
  for (const TsigKeyName& key : known_.keys) list.push_back(tsig_key_json(key));
  return json_response(200, list);
}

}  // namespace pando::http
