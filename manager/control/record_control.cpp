#include "manager/control/record_control.h"

#include <algorithm>
#include <asio/post.hpp>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/unix_time.h"
#include "base/words.h"
#include "config/schema.h"
#include "dns/rdata/rdata.h"
#include "ipc/control_json.h"
#include "manager/commit/rollback.h"
#include "manager/control/pool_work.h"
#include "manager/control/report/explain.h"
#include "manager/control/report/zone_reading.h"
#include "manager/control/zone_control.h"
#include "manager/support/request_author.h"
#include "manager/support/soa.h"
#include "shm/side_table.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// Zones that one command may name: all of them are looked up on the commit thread.
constexpr std::size_t kMaxNamedZones = 64;

/// RFC 2181 §8: a TTL has 31 bits.
constexpr std::uint64_t kMaxTtl = 0x7FFFFFFF;

Result<std::vector<dns::Name>> names_of(const ipc::ControlRequest& request) {
  if (request.names.size() > kMaxNamedZones)
    return fail(Errc::kInvalid, "more than {} zones are named", kMaxNamedZones);
  return names_from_text(request.names);
}

/// Of a request that ipc::request_from_json() has checked.
std::optional<dns::Serial> if_serial_of(const ipc::ControlRequest& request) {
  if (request.if_serial == ipc::kAbsent) return std::nullopt;
  return dns::Serial{static_cast<std::uint32_t>(request.if_serial)};
}

Result<std::optional<dns::Ttl>> ttl_of(const ipc::ControlRequest& request) {
  if (request.ttl == ipc::kAbsent) return std::optional<dns::Ttl>();
  if (request.ttl > kMaxTtl)
    return fail(Errc::kInvalid, "TTL {} is above {}", request.ttl, kMaxTtl);
  return std::optional(dns::Ttl{static_cast<std::uint32_t>(request.ttl)});
}

/// Relative to the zone without a final dot, as `@` and names in zone files.
Result<dns::Name> owner_of(const ipc::ControlRequest& request, const dns::Name& zone) {
  if (request.owner == "@") return zone;
  return dns::Name::from_text(request.owner, zone);
}

/// A type that a person has written: an unknown one may be misspelt.
Result<dns::RRType> known_type(const std::string& text) {
  auto type = dns::rrtype_from_text(text);
  if (type) return type;
  constexpr unsigned kLastUsual = 264;  // mnemonics above are of private or obsolete types
  std::vector<std::string> names;
  for (unsigned number = 1; number <= kLastUsual; ++number)
    if (std::string name = to_text(static_cast<dns::RRType>(number)); !name.starts_with("TYPE"))
      names.push_back(std::move(name));
  std::string upper = text;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view meant = nearest(upper, candidates);
  if (meant.empty()) return type;
  return fail(type.error().code, "{}; did you mean '{}'?", type.error().text, meant);
}

/// No type: an empty text, or ANY.
Result<std::optional<dns::RRType>> type_of(const ipc::ControlRequest& request) {
  if (request.type.empty()) return std::optional<dns::RRType>();
  auto type = known_type(request.type);
  if (!type) return pass(type);
  return *type == dns::RRType::kANY ? std::optional<dns::RRType>() : std::optional(*type);
}

/// A record, set or name that a command names.
struct Target {
  dns::Name zone;
  dns::Name owner;
  std::optional<dns::RRType> type;
  std::optional<Bytes> rdata;
};

Result<Target> target_of(const ipc::ControlRequest& request) {
  auto zone = dns::Name::from_text(request.name);
  if (!zone) return pass(zone);
  auto owner = owner_of(request, *zone);
  if (!owner) return pass(owner);
  auto type = type_of(request);
  if (!type) return pass(type);
  Target target{*zone, *owner, *type, std::nullopt};
  if (request.rdata.empty()) return target;
  if (!*type) return fail(Errc::kInvalid, "data without a type");
  Bytes rdata;
  if (auto read = dns::rdata_from_text(**type, request.rdata, *zone, rdata); !read)
    return fail(Errc::kInvalid, "{} {}: {}", to_text(**type), request.rdata, read.error().text);
  target.rdata = std::move(rdata);
  return target;
}

/// Whether a word is a key of zones in the configuration. Owners may have such names, too.
bool is_setting(std::string_view word) {
  const std::string path = fmt::format("zones[].{}", word);
  return std::ranges::any_of(config::schema(),
                             [&](const config::KeyInfo& key) { return key.path == path; });
}

Result<ExplainedQuery> query_of(const ipc::ControlRequest& request) {
  auto name = dns::Name::from_text(request.name);
  if (!name) return pass(name);
  ExplainedQuery query{{*name, dns::RRType::kA, dns::RRClass::kIN}, {}, {}, request.dnssec_ok};
  if (!request.type.empty()) {
    auto type = known_type(request.type);
    if (!type) return pass(type);
    query.question.type = *type;
  }
  if (!request.from.empty()) {
    auto address = IpAddress::from_text(request.from);
    if (!address) return pass(address);
    query.client = address->resolved();
  }
  if (!request.key.empty()) {
    auto key = dns::Name::from_text(request.key);
    if (!key) return pass(key);
    query.key = *key;
  }
  return query;
}

}  // namespace

RecordControl::RecordControl(asio::io_context& io, asio::thread_pool& pool, ServerParts parts)
    : io_(io),
      pool_(pool),
      parts_(parts),
      transactions_(io, *parts.services.committer, *parts.services.road,
                    [this](const dns::Name& zone) -> Result<config::SerialPolicy> {
                      auto options = primary_zone(parts_.configuration.runtime->settings, zone);
                      if (!options) return pass(options);
                      if (auto thawed = parts_.zones.frozen->check(zone); !thawed)
                        return pass(thawed);
                      return (*options)->serial_policy;
                    },
                    {}) {}

void RecordControl::add_to(CommandTable& table) {
  namespace verb = ipc::verb;
  const auto bind = [this](auto method) { return std::bind_front(method, this); };
  table.add_for_zone(verb::kZoneRead, bind(&RecordControl::read));
  table.add_for_zone(verb::kZoneDiff, bind(&RecordControl::diff));
  table.add_for_zone(verb::kZoneHistory, bind(&RecordControl::history));
  table.add(verb::kZoneQueries, bind(&RecordControl::queries));
  table.add(verb::kExplain, bind(&RecordControl::explain_answer));
  table.add_query(verb::kZoneBegin, bind(&RecordControl::begin));
  table.add_query(verb::kZoneSet, bind(&RecordControl::set));
  table.add_query(verb::kZoneUnset, bind(&RecordControl::unset));
  table.add(verb::kZoneCommit, bind(&RecordControl::commit));
  table.add_query(verb::kZoneAbort, bind(&RecordControl::abort));
}

/// The version is pinned meanwhile. A page takes milliseconds, which updates need not wait for.
void RecordControl::read_in_pool(const dns::Name& zone, MakeResultPage page, const Reply& reply) {
  work_in_pool(
      io_, pool_, parts_.data,
      [zone, page = std::move(page)](const zone::StoreView& view) -> Result<json> {
        const zone::ZoneView found = view.zone_at(zone);
        if (!found) return fail(Errc::kNotFound, "no zone {}", to_text(zone));
        if (!found.loaded()) return fail(Errc::kNotFound, "{} is not loaded", to_text(zone));
        return page(found);
      },
      reply);
}

void RecordControl::read(const dns::Name& zone, const Request& request, const Reply& reply) {
  auto type = type_of(request);
  if (!type) return reply(pass(type));
  ReadFilter filter{std::nullopt, *type};
  if (!request.owner.empty()) {
    auto owner = owner_of(request, zone);
    if (!owner) return reply(pass(owner));
    if (!owner->view().is_at_or_below(zone))
      return reply(fail(Errc::kInvalid, "{} is not in {}", to_text(*owner), to_text(zone)));
    filter.owner = *owner;
  }
  read_in_pool(
      zone,
      [filter, after = request.after](const zone::ZoneView& found) {
        return as_json(read_page(found, filter, after, {}));
      },
      reply);
}

void RecordControl::diff(const dns::Name& zone, const Request& request, const Reply& reply) {
  if (request.serials.size() > 2)
    return reply(fail(Errc::kInvalid, "zone diff takes two serials at most"));
  if (request.serials.empty()) return reply(diff_of_transaction(request, zone));
  read_in_pool(
      zone,
      [serials = request.serials,
       after = request.after](const zone::ZoneView& found) -> Result<json> {
        const PageLimits limits;
        const dns::Serial from{serials[0]};
        const dns::Serial to = serials.size() == 2 ? dns::Serial{serials[1]} : found.serial();
        auto changes = history_diff(found, from, to, limits.changed);
        if (!changes) return pass(changes);
        return as_json(diff_page(*changes, from, to, after, limits));
      },
      reply);
}

/// On the commit thread, where the transaction lives. The changeset is made for each page anew: a
/// transaction is bounded, and nobody waits for the pages of a large one.
Result<json> RecordControl::diff_of_transaction(const Request& request,
                                                const dns::Name& zone) const {
  auto changes = transactions_.changes(zone);
  if (!changes) return pass(changes);
  const dns::Serial from = parts_.services.committer->current().zone_at(zone).serial();
  dns::Serial to = from;
  for (const zone::Record& record : changes->added)
    if (record.type == dns::RRType::kSOA) to = soa_serial(record.rdata);
  return as_json(diff_page(*changes, from, to, request.after, {}));
}

void RecordControl::history(const dns::Name& zone, const Request& request, const Reply& reply) {
  read_in_pool(
      zone,
      [after = request.after](const zone::ZoneView& found) {
        return as_json(history_page(found, after, {}));
      },
      reply);
}

void RecordControl::queries(const Request&, const Reply& reply) {
  work_in_pool(io_, pool_, parts_.data, [this, notes = BusyZoneNames::read(*parts_.data.slots)](const zone::StoreView& view)
                   -> Result<json> { return json(busy_.with_names(notes, view)); },
               reply);
}

void RecordControl::explain_answer(const Request& request, const Reply& reply) {
  auto query = query_of(request);
  if (!query) return reply(pass(query));
  const auto& keys = parts_.configuration.runtime->settings.keys;
  if (query->key && std::ranges::find(keys, *query->key, &config::Key::name) == keys.end())
    return reply(fail(Errc::kNotFound,
                      "no key {} is configured: a query that it signs gets NOTAUTH (BADKEY)",
                      to_text(*query->key)));
  work_in_pool(
      io_, pool_, parts_.data,
      [this, query = std::move(*query)](const zone::StoreView& view) {
        return as_json(explain(view, query, [this](const zone::ZoneView& zone) {
          const auto* side = shm::known_side(parts_.data.store->window(), zone.side_index());
          const std::uint64_t at =
              side == nullptr ? 0 : side->expires_at.load(std::memory_order_relaxed);
          return at != 0 && at <= unix_seconds();
        }));
      },
      reply);
}

Result<json> RecordControl::begin(const Request& request) {
  auto names = names_of(request);
  if (!names) return pass(names);
  const auto tied_to = request.while_connected ? request.connection : request.session;
  return as_json(transactions_.begin(*names, if_serial_of(request), request.session, tied_to));
}

Result<json> RecordControl::set(const Request& request) {
  auto done = set_record(request);
  if (done || !is_setting(request.owner)) return done;
  const auto zone = dns::Name::from_text(request.name);
  if (!zone || transactions_.find(*zone)) return done;
  return fail(done.error().code, "{}; the setting {} is changed by: zone configure {} {} VALUE",
              done.error().text, request.owner, request.name, request.owner);
}

Result<json> RecordControl::set_record(const Request& request) {
  auto target = target_of(request);
  if (!target) return pass(target);
  auto ttl = ttl_of(request);
  if (!ttl) return pass(ttl);
  if (!target->type || !target->rdata)
    return fail(Errc::kInvalid, "a record to set has a type and data");
  return as_json(transactions_.set(target->zone, target->owner, *target->type, *ttl, *target->rdata,
                                   request.session));
}

Result<json> RecordControl::unset(const Request& request) {
  auto target = target_of(request);
  if (!target) return pass(target);
  const auto rdata = target->rdata ? std::optional<ByteView>(*target->rdata) : std::nullopt;
  return as_json(
      transactions_.unset(target->zone, target->owner, target->type, rdata, request.session));
}

void RecordControl::commit(const Request& request, const Reply& reply) {
  auto names = names_of(request);
  if (!names) return reply(pass(names));
  transactions_.commit(
      *names, if_serial_of(request), parts_.configuration.runtime->limits,
      [reply](Result<ipc::ZoneCommitResult> result) { reply(as_json(std::move(result))); },
      request.session, author_of(request));
}

Result<json> RecordControl::abort(const Request& request) {
  auto names = names_of(request);
  if (!names) return pass(names);
  return empty_result(transactions_.abort(*names, request.session));
}

}  // namespace pando::manager
