#include "http/api/zone_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "config/settings/settings.h"
#include "dns/rdata/rdata.h"
#include "dns/text.h"
#include "dns/types.h"
#include "ipc/control.h"
#include "ipc/control_json.h"

namespace pando::http {

using nlohmann::json;
namespace verb = ipc::verb;

namespace {

/// A connection that is used for one change.
class Conversation {
 public:
  static Result<Conversation> open(const std::string& run_directory) {
    auto socket = ipc::connect_control(run_directory);
    if (!socket) return pass(socket);
    return Conversation(std::move(*socket));
  }

  Result<json> call(const ipc::ControlRequest& request) {
    // The manager ends a connection that sends more.
    constexpr std::size_t kFrame = 1024;
    if (request.rdata.size() > (ipc::kMaxRequestBytes - kFrame) / 2)  // escapes in JSON double it
      return fail(Errc::kInvalid, "{} {}: a record of {} bytes is too large", request.owner,
                  request.type, request.rdata.size());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return ipc::call(socket_.get(), request, std::max(left, std::chrono::milliseconds(0)));
  }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Conversation(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
  Clock::time_point end_ = Clock::now() + ZoneWriter::kTimeout;
};

ipc::ControlRequest request_for(std::string_view verb, const dns::Name& zone,
                                const RRsetChange& change) {
  ipc::ControlRequest request;
  request.verb = std::string(verb);
  request.name = to_text(zone);
  request.owner = to_text(change.owner);
  request.type = to_text(change.type);
  return request;
}

/// Unknown types, and empty data, have a form of their own (RFC 3597 §5).
std::string text_of(dns::RRType type, ByteView rdata) {
  std::string text = dns::rdata_to_text(type, rdata);
  return text.empty() ? "\\# 0" : text;
}

/// A record to remove that does not exist is no error: the client's aim is reached.
Status unset(Conversation& manager, const ipc::ControlRequest& request) {
  auto done = manager.call(request);
  return done || done.error().code == Errc::kNotFound ? Status() : Status(pass(done));
}

/// Clients repeat the serial that they have read, or an older one: the server counts.
Bytes with_serial_ahead(Bytes soa, dns::Serial present) {
  constexpr std::size_t kBehindNames = 20;  // RFC 1035 §3.3.13: five numbers of 32 bits
  std::uint8_t* at = soa.data() + soa.size() - kBehindNames;
  if (!dns::Serial{load_be32(at)}.ahead_of(present)) store_be32(at, present.value);
  return soa;
}

Status send(Conversation& manager, const dns::Name& zone, const RRsetChange& change,
            dns::Serial present) {
  using Kind = RRsetChange::Kind;
  const bool is_soa = change.type == dns::RRType::kSOA;
  const bool clears = change.kind == Kind::kDelete || change.kind == Kind::kReplace;
  // A zone always has its SOA, which another one replaces.
  if (clears && !(is_soa && !change.rdatas.empty()))
    if (auto done = unset(manager, request_for(verb::kZoneUnset, zone, change)); !done) return done;
  for (const Bytes& rdata : change.rdatas) {
    const bool removes = change.kind == Kind::kPrune;
    auto request = request_for(removes ? verb::kZoneUnset : verb::kZoneSet, zone, change);
    request.rdata = text_of(change.type, is_soa ? with_serial_ahead(rdata, present) : rdata);
    if (removes) {
      if (auto done = unset(manager, request); !done) return done;
      continue;
    }
    if (change.ttl) request.ttl = *change.ttl;
    if (auto done = manager.call(request); !done) return pass(done);
  }
  return {};
}

Result<ipc::CommittedZone> make_changes(Conversation& manager, const dns::Name& zone,
                                        std::span<const RRsetChange> changes, dns::Serial present,
                                        const ApiClient& client) {
  for (const RRsetChange& change : changes)
    if (auto sent = send(manager, zone, change, present); !sent) return pass(sent);
  ipc::ControlRequest commit;
  commit.verb = std::string(verb::kZoneCommit);
  commit.names = {to_text(zone)};
  commit.by = client.key;
  commit.client = client.address;
  auto result = manager.call(commit);
  if (!result) return pass(result);
  auto done = ipc::read_json<ipc::ZoneCommitResult>(*result);
  if (!done) return pass(done);
  if (done->committed.size() != 1) return fail(Errc::kIo, "the manager's reply has no zone");
  return done->committed.front();
}

}  // namespace

Result<ipc::CommittedZone> ZoneWriter::apply(const dns::Name& zone,
                                             std::span<const RRsetChange> changes,
                                             const ApiClient& client) const {
  auto manager = Conversation::open(run_directory_);
  if (!manager) return pass(manager);
  ipc::ControlRequest request;
  request.verb = std::string(verb::kZoneBegin);
  request.names = {to_text(zone)};
  auto begun = manager->call(request);
  if (!begun) return pass(begun);
  const auto list = ipc::read_json<ipc::TransactionList>(*begun);
  const dns::Serial present{list && !list->transactions.empty() ? list->transactions[0].serial : 0};
  auto done = make_changes(*manager, zone, changes, present, client);
  if (done) return done;
  // The end of the connection would do, but the next change may be there before it.
  request.verb = std::string(verb::kZoneAbort);
  [[maybe_unused]] const auto aborted = manager->call(request);
  return done;
}

Result<json> ZoneWriter::call(const ipc::ControlRequest& request) const {
  auto manager = Conversation::open(run_directory_);
  if (!manager) return pass(manager);
  return manager->call(request);
}

Status ZoneWriter::notify(const dns::Name& zone) const {
  auto done = call({.verb = std::string(verb::kZoneNotify), .name = to_text(zone)});
  return done || done.error().code == Errc::kInvalid ? Status() : Status(pass(done));
}

Status ZoneWriter::retransfer(const dns::Name& zone) const {
  auto done = call({.verb = std::string(verb::kZoneRetransfer), .name = to_text(zone)});
  return done ? Status() : Status(pass(done));
}

namespace {

void replace_all(std::string& text, const std::string& from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// After the path of a file: the end of its temporary name and of ":LINE", and the line, or 0.
std::pair<std::size_t, std::uint64_t> line_behind(std::string_view text, std::size_t at) {
  constexpr std::string_view kTemporary = ".partial";  // until the manager has written the file
  if (text.substr(at).starts_with(kTemporary)) at += kTemporary.size();
  if (at == text.size() || text[at] != ':') return {at, 0};
  const std::size_t end = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
  const auto line = dns::parse_decimal(text.substr(at + 1, end - at - 1), ~0ULL);
  return line ? std::pair(end, *line) : std::pair(at, std::uint64_t{0});
}

/// The manager's words about the file that it makes of the content, as words about the request.
std::string about_request(std::string text, const NewZone& zone, const std::string& journal) {
  const auto path = config::created_zone_path(journal, zone.name);
  if (!path) return text;
  for (auto at = text.find(*path); at != std::string::npos; at = text.find(*path, at)) {
    const auto [end, line] = line_behind(text, at + path->size());
    const bool is_clients = zone.lines_before && line > *zone.lines_before;
    text.replace(at, end - at,
                 is_clients ? fmt::format("line {}", line - *zone.lines_before) : "its content");
  }
  replace_all(text, journal + "/", "the manager's folder/");
  return text;
}

}  // namespace

Status ZoneWriter::create(const NewZone& zone) const {
  // Around the text: the names of members, and of primaries.
  constexpr std::size_t kFrame = 4096;
  json object{{"name", to_text(zone.name)}};
  if (zone.primaries.empty())
    object["content"] = zone.content;
  else
    object["primaries"] = zone.primaries;
  if (!zone.template_name.empty()) object["template"] = zone.template_name;
  if (zone.is_signed) object["dnssec"] = config::kDefaultDnssecPolicy;
  ipc::ControlRequest request;
  request.verb = std::string(verb::kZoneAdd);
  request.zones.push_back(object.dump(-1, ' ', false, json::error_handler_t::replace));
  if (request.zones[0].size() > ipc::kMaxRequestBytes - kFrame)
    return fail(Errc::kFull, "a new zone of more than {} bytes: add the rest by PATCH",
                ipc::kMaxRequestBytes - kFrame);
  auto result = call(request);
  if (!result)
    return fail(result.error().code, "{}", about_request(result.error().text, zone, journal_));
  auto added = ipc::read_json<ipc::ReloadResult>(*result);
  if (!added) return pass(added);
  if (added->zones_failed == 0) return {};
  // A zone that cannot be loaded is none that the client wanted.
  [[maybe_unused]] const auto removed = remove(zone.name);
  if (added->problems.empty()) return fail(Errc::kInvalid, "the zone cannot be loaded");
  return fail(Errc::kInvalid, "{}", about_request(added->problems.front(), zone, journal_));
}

Status ZoneWriter::set_primaries(const dns::Name& zone,
                                 const std::vector<std::string>& primaries) const {
  auto done = call({.verb = std::string(verb::kZoneConfigure),
                    .name = to_text(zone),
                    .value = json(primaries).dump(),
                    .key = "primaries"});
  return done ? Status() : Status(pass(done));
}

Status ZoneWriter::sign(const dns::Name& zone) const {
  auto done = call({.verb = std::string(verb::kZoneConfigure),
                    .name = to_text(zone),
                    .value = json(config::kDefaultDnssecPolicy).dump(),
                    .key = "dnssec"});
  return done ? Status() : Status(pass(done));
}

Status ZoneWriter::remove(const dns::Name& zone) const {
  auto manager = Conversation::open(run_directory_);
  if (!manager) return pass(manager);
  if (auto removed = manager->call(
          {.verb = std::string(verb::kZoneRemove), .names = {to_text(zone)}});
      !removed)
    return pass(removed);
  return unset(*manager, {.verb = std::string(verb::kZonePurge), .name = to_text(zone)});
}

}  // namespace pando::http
