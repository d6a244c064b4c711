#include "manager/update/update_service.h"

#include "dns/rdata/rdata.h"
#include "ipc/log.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

using dns::Rcode;

/// Bytes of an update while waiting. A record has room for the longest name, twenty times the size
/// of a short name in the message.
std::size_t octets_of(ByteView request, const UpdateMessage& message) noexcept {
  const std::size_t records = message.prerequisites.size() + message.updates.size();
  return request.size() + records * sizeof(UpdateRecord);
}

/// Of an update that was not applied. RFC 2136 §3.2: the RCODEs of prerequisites that are not met.
ipc::ZoneCounter counter_of(Rcode rcode) noexcept {
  switch (rcode) {
    case Rcode::kNoError:  // valid, but it could not be stored
    case Rcode::kServFail:
      return ipc::ZoneCounter::kUpdatesFailed;
    case Rcode::kNXDomain:
    case Rcode::kYXDomain:
    case Rcode::kYXRRSet:
    case Rcode::kNXRRSet:
      return ipc::ZoneCounter::kUpdatesPrerequisite;
    default:
      return ipc::ZoneCounter::kUpdatesRefused;
  }
}

}  // namespace

UpdateService::UpdateService(const Committer& committer, ChangeRoad& road, RuntimePtr runtime,
                             NotifyHandler notify, Clock clock, Clock steady)
    : commits_(committer, road),
      runtime_(std::move(runtime)),
      notify_(std::move(notify)),
      clock_(std::move(clock)),
      replies_(clock_, std::move(steady)) {}

UpdateService::Request UpdateService::receive(ipc::Forward&& forward, ForwardReply&& reply) const {
  return std::make_shared<ClientRequest>(std::move(forward), runtime_, std::move(reply));
}

void UpdateService::handle(ipc::Forward&& forward, ForwardReply reply) {
  const Request request = receive(std::move(forward), std::move(reply));
  if (!request->fits_kind()) return replies_.drop(*request);
  switch (request->kind()) {
    case ipc::ForwardKind::kUpdate:
      return update(request);
    case ipc::ForwardKind::kNotify:
      return notify(*request);
    case ipc::ForwardKind::kSignedQuery:
      return signed_query(*request);
  }
  replies_.drop(*request);
}

/// Nothing was executed, so the answer is not remembered.
void UpdateService::refuse(ipc::Forward&& forward, ForwardReply reply, std::string_view why) {
  const Request request = receive(std::move(forward), std::move(reply));
  const bool silent = request->kind() == ipc::ForwardKind::kNotify && request->over_udp();
  if (!request->fits_kind() || silent) return replies_.drop(*request);
  replies_.not_ready(*request, why);
}

/// False: the check of the signature failed, and the error was answered.
bool UpdateService::verify(ClientRequest& request) {
  if (request.verify(seconds())) return true;
  replies_.not_verified(request);
  return false;
}

// UPDATE ----------------------------------------------------------------------------------------

void UpdateService::update(const Request& request) {
  using Execution = ReplyPath::Execution;
  if (auto forwarded = to_forward(*request)) {
    if (replies_.repeats(*request, Execution::kAtPrimary)) return;
    // A key of this server proves the client here; of another key only the primary can tell.
    const bool verified = request->verify(seconds());
    if (!verified && request->tsig_error() != Rcode::kBadKey)
      return replies_.not_verified(*request);
    forwarded->proven = verified && request->key() != nullptr;
    ++replies_.counters().updates;
    replies_.remember(*request, Execution::kAtPrimary);
    return forward(request, std::move(*forwarded));
  }
  // Verified first: forged requests must not displace remembered answers.
  if (!verify(*request) || replies_.repeats(*request, Execution::kHere)) return;
  if (replies_.is_replay(*request)) return;
  ++replies_.counters().updates;
  // This answer is not remembered: nothing was executed, so a repetition may succeed. Many such
  // answers must not displace answers to executed requests.
  if (!has_room()) {
    count(*request, ipc::ZoneCounter::kUpdatesFailed);
    return replies_.failed(
        *request, {Errc::kFull, fmt::format("{} updates wait for the disk already", waiting_)},
        "too many updates wait already");
  }
  replies_.remember(*request, Execution::kHere);
  verified_update(request);
}

/// Only zones of this server have counters: other names are a stranger's choice.
void UpdateService::count(const ClientRequest& request, ipc::ZoneCounter counter) {
  if (zone_counts_ == nullptr) return;
  const dns::Name zone = request.parsed().zone();
  if (runtime_->settings.zones.find(zone))
    zone_counts_->count(ipc::zone_count_key(zone), static_cast<std::size_t>(counter));
}

namespace {

/// What the client has shown, for the history: "key ours.", "tls second", or both.
std::string proof_of(const ClientRequest& request) {
  const zone::Requester requester = request.requester();
  std::string proof;
  if (requester.key != nullptr) proof = "key " + to_text(*requester.key);
  if (requester.peer != nullptr && !requester.peer->remotes.empty())
    proof += (proof.empty() ? "tls " : ", tls ") + to_text(*requester.peer);
  return proof;
}

}  // namespace

bool UpdateService::has_room() const noexcept {
  return waiting_ < limits_.updates && waiting_octets_ < limits_.octets;
}

void UpdateService::verified_update(const Request& request) {
  auto message = parse_update(request->parsed());
  if (!message) return replies_.refused(*request, dns::Name(), message.error());
  const auto* options = request->runtime().settings.zones.options_of(message->zone.name);
  Refusal refusal;
  if (options == nullptr)
    refusal = {Rcode::kNotAuth, "not a zone of this server", dns::ExtendedError::kNotAuthoritative};
  else if (options->is_secondary())
    // RFC 2136 §6 lets a secondary forward. A secondary without forwarding answers REFUSED, as in
    // BIND.
    refusal = {Rcode::kRefused,
               options->forward_updates ? "no rule of allow-update lets this client's be passed on"
                                        : "secondary zone, updates are not forwarded",
               dns::ExtendedError::kProhibited};
  else if (!may_update_something(options->allow_update, request->requester()))
    // Refused immediately: updates of strangers must not wait for the disk among those of clients.
    refusal = {Rcode::kRefused, "no rule of allow-update matches", dns::ExtendedError::kProhibited};
  else if (frozen_ != nullptr && frozen_->contains(message->zone.name))
    refusal = {Rcode::kRefused, "the zone is frozen", dns::ExtendedError::kProhibited};
  if (refusal.rcode != Rcode::kNoError) {
    count(*request, ipc::ZoneCounter::kUpdatesRefused);
    return replies_.refused(*request, message->zone.name, refusal);
  }
  commit(request, std::move(*message), *options);
}

void UpdateService::commit(const Request& request, UpdateMessage message,
                           const config::ZoneOptions& options) {
  UpdateRules rules;
  rules.allow_update = &options.allow_update;  // lives as long as the request's runtime
  rules.requester = request->requester();
  rules.serial_policy = options.serial_policy;
  rules.is_signed_here = options.is_signed_here();
  rules.now = seconds();
  rules.limits = request->runtime().limits;
  const dns::Name zone = message.zone.name;
  const std::size_t octets = octets_of(request->parsed().octets(), message);
  ++waiting_;
  waiting_octets_ += octets;
  auto done = [this, request, zone, octets](const Refusal& verdict,
                                            const Result<ChangeOutcome>& applied) {
    --waiting_;
    waiting_octets_ -= octets;
    committed(*request, zone, verdict, applied);
  };
  const zone::Author author =
      zone::make_author(proof_of(*request), to_text(request->client().address));
  commits_.submit({request->client(), std::move(message), rules, author, request,
                   [this, zone] { return takes_updates(zone); }, std::move(done)});
}

/// Checked again at commit, since the configuration may change during a large update.
Status UpdateService::takes_updates(const dns::Name& zone) const {
  const auto* options = runtime_->settings.zones.options_of(zone);
  if (options != nullptr && !options->is_secondary())
    return frozen_ == nullptr ? Status() : frozen_->check(zone);
  return fail(Errc::kNotFound, "the zone takes no updates any more");
}

void UpdateService::committed(ClientRequest& request, const dns::Name& zone, const Refusal& refusal,
                              const Result<ChangeOutcome>& applied) {
  if (applied)
    count(request, ipc::ZoneCounter::kUpdatesAccepted);
  else
    count(request, counter_of(refusal.rcode));
  if (applied)
    replies_.accepted(request, applied->applied);
  else if (refusal.rcode == Rcode::kNoError)  // the update was valid, but could not be stored
    replies_.failed(request, applied.error(), "the update cannot be stored now");
  else
    replies_.refused(request, zone, refusal);
}

/// The update, if it must be forwarded to the primary. The signature is not checked, since perhaps
/// only the primary knows the key. Permission depends on the claimed key name. An unsigned update
/// needs a rule that allows it, because the primary sees this server's address in place of the
/// client's.
std::optional<ForwardedUpdate> UpdateService::to_forward(const ClientRequest& request) const {
  const auto& zone = request.parsed().question();
  const auto& tsig = request.parsed().tsig();
  if (forwarder_ == nullptr || !zone || !tsig || zone->type != dns::RRType::kSOA ||
      zone->rr_class != dns::RRClass::kIN)
    return std::nullopt;
  const config::Settings& settings = request.runtime().settings;
  const auto* options = settings.zones.options_of(zone->name);
  if (options == nullptr || !options->is_secondary() || !options->forward_updates)
    return std::nullopt;
  const Requester requester = request.requester_with(*tsig ? &(*tsig)->key_name : nullptr);
  const bool anybody = *tsig && options->allow_update.empty();
  if (!anybody && !may_update_something(options->allow_update, requester)) return std::nullopt;
  ForwardedUpdate update;
  update.message = request.parsed().octets();
  update.source = settings.server.transfer_source;
  for (const std::string& name : options->primaries)
    if (const config::Remote* remote = settings.find_remote(name))
      update.primaries.insert(update.primaries.end(), remote->address.begin(),
                              remote->address.end());
  return update;
}

void UpdateService::forward(const Request& request, ForwardedUpdate update) {
  forwarder_->forward(std::move(update), [this, request](Result<Bytes> answer) {
    using enum ipc::ZoneCounter;
    count(*request, answer ? kUpdatesForwarded : kUpdatesFailed);
    if (answer) return replies_.forwarded(*request, std::move(*answer));
    replies_.not_forwarded(*request, answer.error());
  });
}

// NOTIFY ----------------------------------------------------------------------------------------

namespace {

/// The serial of a SOA in the answer section; an error if that SOA is malformed.
Result<std::optional<dns::Serial>> serial_hint(const ParsedRequest& notify) {
  std::optional<dns::Serial> serial;
  dns::MessageReader reader = notify.records();
  for (std::uint16_t i = 0; i < notify.header()->ancount; ++i) {
    auto record = reader.record();
    if (!record) return pass(record);
    if (record->type != dns::RRType::kSOA) continue;
    Bytes rdata;
    const auto decoded = dns::decompress_rdata(record->type, reader.message(), record->rdata_offset,
                                               record->rdata_length, rdata);
    if (!decoded) return pass(decoded);
    serial = soa_serial(rdata);
  }
  return serial;
}

}  // namespace

/// RFC 1996 §3.10: each NOTIFY is answered. A zone that is unknown or primary here gives NOTAUTH,
/// as in Knot; a sender without permission gets REFUSED, as in BIND.
dns::Rcode UpdateService::judge_notify(const ClientRequest& request) {
  const auto& question = request.parsed().question();
  if (!question) return Rcode::kFormErr;
  if (question->rr_class != dns::RRClass::kIN) return Rcode::kNotAuth;
  if (question->type != dns::RRType::kSOA) return Rcode::kNotImp;
  const config::Settings& settings = request.runtime().settings;
  const auto* options = settings.zones.options_of(question->name);
  if (options == nullptr || !options->is_secondary()) return Rcode::kNotAuth;
  const zone::ZoneSettings rules = config::compile(*options, settings);
  if (!zone::allowed(rules.allow_notify, request.requester()))
    return Rcode::kRefused;
  auto serial = serial_hint(request.parsed());
  if (!serial) return Rcode::kFormErr;
  std::optional<dns::Name> key;
  if (request.key() != nullptr) key = *request.key();
  if (notify_) notify_({question->name, request.client(), *serial, key});
  return Rcode::kNoError;
}

void UpdateService::notify(ClientRequest& request) {
  ++replies_.counters().notifies;
  if (!verify(request)) return;
  const Rcode rcode = judge_notify(request);
  log::debug("notify_received", "client", to_text(request.client()), "rcode", to_text(rcode));
  replies_.answer(request, rcode, true);
}

// Signed queries --------------------------------------------------------------------------------

void UpdateService::signed_query(ClientRequest& request) {
  ++replies_.counters().signed_queries;
  if (!verify(request)) return;
  // Workers forward only signed queries, so an unsigned one is invalid.
  if (request.key() == nullptr) return replies_.drop(request);
  replies_.sign_response(request);
}

}  // namespace pando::manager
