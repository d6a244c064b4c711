#include "manager/update/update_service.h"

#include "dns/rdata/rdata.h"
#include "ipc/log.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

using dns::Rcode;

std::string key_text(const ForwardedRequest& request) {
  return request.key() == nullptr ? "-" : to_text(*request.key());
}

void log_update(const ForwardedRequest& request, const zone::Applied& applied) {
  log::info("zone_updated", "zone", to_text(applied.effective.zone), "client",
            to_text(request.client()), "key", key_text(request), "from", applied.from.value,
            "serial", applied.to.value, "added", applied.effective.added.size(), "removed",
            applied.effective.removed.size());
}

/// Over TCP nothing is retransmitted, so two equal messages are two requests.
std::optional<RecentReplies::Key> recent_key(ipc::Transport transport, const Endpoint& client,
                                             ByteView message) {
  if (transport != ipc::Transport::kUdp) return std::nullopt;
  return RecentReplies::key_of(client, message);
}

/// The zone of an update, for the log.
dns::Name zone_of(ByteView update) {
  dns::MessageReader reader(update);
  if (!reader.header()) return {};
  const auto zone = reader.question();
  return zone ? zone->name : dns::Name();
}

/// Bytes of an update while waiting. A record has room for the longest name, twenty times the size
/// of a short name in the message.
std::size_t octets_of(ByteView request, const UpdateMessage& message) noexcept {
  const std::size_t records = message.prerequisites.size() + message.updates.size();
  return request.size() + records * sizeof(UpdateRecord);
}

/// True for SERVFAIL. This server's SERVFAIL means that nothing was executed; a primary's SERVFAIL
/// does not tell that.
bool is_failure(const Bytes& response) noexcept {
  return response.size() >= dns::kHeaderOctets &&
         static_cast<Rcode>(response[3] & 0x0F) == Rcode::kServFail;
}

/// Checks the opcode again: workers check it, except a worker that was taken over.
bool is_request(const ipc::Forward& forward) {
  dns::MessageReader reader(forward.message);
  const auto header = reader.header();
  if (!header || header->qr) return false;
  switch (forward.kind) {
    case ipc::ForwardKind::kUpdate:
      return header->opcode == dns::Opcode::kUpdate;
    case ipc::ForwardKind::kNotify:
      return header->opcode == dns::Opcode::kNotify;
    case ipc::ForwardKind::kSignedQuery:
      return true;  // also for an UPDATE that the worker refuses itself: the refusal is signed here
  }
  return false;
}

}  // namespace

UpdateService::UpdateService(Committer& committer, RuntimePtr runtime, NotifyHandler* notify,
                             Clock clock)
    : commits_(committer),
      runtime_(std::move(runtime)),
      notify_(notify),
      clock_(std::move(clock)) {}

void UpdateService::handle(ipc::Forward&& request, ForwardReply reply) {
  if (!is_request(request)) return reply({});
  switch (request.kind) {
    case ipc::ForwardKind::kUpdate:
      return update(std::move(request), std::move(reply));
    case ipc::ForwardKind::kNotify:
      return notify(std::move(request), reply);
    case ipc::ForwardKind::kSignedQuery:
      return signed_query(std::move(request), reply);
  }
  reply({});
}

/// As in turn_away(), nothing was executed, so the answer is not remembered.
void UpdateService::refuse(ipc::Forward&& request, const ForwardReply& reply,
                           std::string_view why) {
  if (!is_request(request)) return reply({});
  if (request.kind == ipc::ForwardKind::kNotify && request.transport == ipc::Transport::kUdp)
    return reply({});
  if (request.kind == ipc::ForwardKind::kUpdate)
    failed(zone_of(request.message), {Errc::kExists, std::string(why)});
  const Request judged =
      ForwardedRequest::accept(runtime_, request.client, std::move(request.message), seconds());
  const ReplyDetail detail{dns::ExtendedError::kNotReady, why};
  // An unknown key may be a primary's, so the answer is SERVFAIL and not BADKEY.
  reply(judged->verified() ? judged->reply(Rcode::kServFail, false, seconds(), detail)
                           : make_reply(judged->message(), Rcode::kServFail, false, detail));
}

/// Checks the request's signature. Null: the check failed, and the error was answered.
UpdateService::Request UpdateService::accept(ipc::Forward& forward, const ForwardReply& reply) {
  Request request =
      ForwardedRequest::accept(runtime_, forward.client, std::move(forward.message), seconds());
  if (request->verified()) return request;
  not_verified(*request);
  reply(request->error_reply(seconds()));
  return nullptr;
}

void UpdateService::not_verified(const ForwardedRequest& request) {
  ++counters_.bad_signatures;
  if (const auto requests = unverified_.one_more(clock_()))
    log::info("request_not_verified", "client", to_text(request.client()), "error",
              to_text(request.tsig_error()), "requests", *requests);
}

// UPDATE ----------------------------------------------------------------------------------------

void UpdateService::update(ipc::Forward&& forward, ForwardReply reply) {
  if (auto update = to_forward(forward)) {
    const auto key = recent_key(forward.transport, forward.client, forward.message);
    if (repeated(recent_forwards_, key, reply)) return;
    ++counters_.updates;
    remember(recent_forwards_, key, reply);
    return pass_on(std::move(forward), std::move(*update), reply);
  }
  // Verified first: forged requests must not displace remembered answers.
  const ipc::Transport transport = forward.transport;
  const Request request = accept(forward, reply);
  if (!request) return;
  const auto key = recent_key(transport, request->client(), request->message());
  if (repeated(recent_, key, reply)) return;
  ++counters_.updates;
  if (!has_room()) return turn_away(*request, reply);
  remember(recent_, key, reply);
  verified_update(request, reply);
}

/// True: the request is a repetition and gets the first answer.
bool UpdateService::repeated(RecentReplies& recent, const RecentKey& key, ForwardReply& reply) {
  if (!key || !recent.join(*key, reply, clock_())) return false;
  ++counters_.repeated;
  return true;
}

/// Registers a request before its execution, so that `reply` answers all repetitions. A failed
/// request is forgotten, since a repetition may succeed.
void UpdateService::remember(RecentReplies& recent, const RecentKey& key, ForwardReply& reply) {
  if (!key) return;
  recent.begin(*key, std::move(reply));
  const bool done_here = &recent == &recent_;
  reply = [this, &recent, known = *key, done_here](const Bytes& response) {
    if (done_here && is_failure(response)) return recent.fail(known, response);
    recent.finish(known, response, clock_());
  };
}

bool UpdateService::has_room() const noexcept {
  return waiting_ < limits_.updates && waiting_octets_ < limits_.octets;
}

/// Answers SERVFAIL at once. The answer is not remembered: nothing was executed, so a repetition
/// may succeed. Many such answers must not displace answers to executed requests.
void UpdateService::turn_away(ForwardedRequest& request, const ForwardReply& reply) {
  failed(zone_of(request.message()),
         {Errc::kFull, fmt::format("{} updates wait for the disk already", waiting_)});
  reply(refused(request,
                {Rcode::kServFail, "too many updates wait already", dns::ExtendedError::kOther}));
}

void UpdateService::verified_update(const Request& request, const ForwardReply& reply) {
  auto message = parse_update(request->message());
  if (!message) {
    tell_refusal(*request, dns::Name(), message.error());
    return reply(request->reply(message.error().rcode, false, seconds()));
  }
  const config::ZoneTable& zones = request->runtime().settings.zones;
  const auto index = zones.find(message->zone.name);
  Refusal refusal;
  if (!index)
    refusal = {Rcode::kNotAuth, "not a zone of this server", dns::ExtendedError::kNotAuthoritative};
  else if (zones[*index].options->is_secondary())
    // RFC 2136 §6 lets a secondary forward. A secondary without forwarding answers REFUSED, as in
    // BIND.
    refusal = {Rcode::kRefused,
               zones[*index].options->forward_updates
                   ? "no rule of allow-update lets this client's be passed on"
                   : "secondary zone, updates are not forwarded",
               dns::ExtendedError::kProhibited};
  else if (!may_update_something(zones[*index].options->allow_update,
                                 {request->client().address, request->key()}))
    // Refused at once: updates of strangers must not wait for the disk among those of clients.
    refusal = {Rcode::kRefused, "no rule of allow-update matches", dns::ExtendedError::kProhibited};
  if (refusal.rcode != Rcode::kNoError) {
    tell_refusal(*request, message->zone.name, refusal);
    return reply(refused(*request, refusal));
  }
  commit(request, std::move(*message), *zones[*index].options, reply);
}

void UpdateService::commit(const Request& request, UpdateMessage message,
                           const config::ZoneOptions& options, const ForwardReply& reply) {
  UpdateRules rules;
  rules.allow_update = &options.allow_update;  // lives as long as the request's runtime
  rules.requester = {request->client().address, request->key()};
  rules.serial_policy = options.serial_policy;
  rules.now = seconds();
  rules.limits = request->runtime().limits;
  const dns::Name zone = message.zone.name;
  const std::size_t octets = octets_of(request->message(), message);
  ++waiting_;
  waiting_octets_ += octets;
  auto done = [this, request, reply, zone, octets](Refusal& verdict,
                                                   const Result<zone::Applied>& applied) {
    --waiting_;
    waiting_octets_ -= octets;
    committed(*request, zone, verdict, applied, reply);
  };
  commits_.submit({request->client(), std::move(message), rules, request,
                   [this, zone] { return takes_updates(zone); }, std::move(done)});
}

/// Checked again at commit, since the configuration may change during a large update.
Status UpdateService::takes_updates(const dns::Name& zone) const {
  const config::ZoneTable& zones = runtime_->settings.zones;
  const auto index = zones.find(zone);
  if (index && !zones[*index].options->is_secondary()) return {};
  return fail(Errc::kNotFound, "the zone takes no updates any more");
}

void UpdateService::committed(ForwardedRequest& request, const dns::Name& zone, Refusal& refusal,
                              const Result<zone::Applied>& applied, const ForwardReply& reply) {
  if (applied) {
    ++counters_.accepted;
    reply(request.reply(Rcode::kNoError, false, seconds()));
    if (!applied->effective.empty()) log_update(request, *applied);
    return;
  }
  if (refusal.rcode == Rcode::kNoError) {  // the update was valid, but could not be stored
    refusal = {Rcode::kServFail, "the update cannot be stored now", dns::ExtendedError::kOther};
    failed(zone, applied.error());
  } else {
    tell_refusal(request, zone, refusal);
  }
  reply(refused(request, refusal));
}

void UpdateService::tell_refusal(const ForwardedRequest& request, const dns::Name& zone,
                                 const Refusal& why) {
  if (const auto updates = refused_.one_more(clock_()))
    log::info("update_refused", "zone", to_text(zone), "client", to_text(request.client()), "key",
              key_text(request), "rcode", to_text(why.rcode), "reason", why.reason, "updates",
              *updates);
}

Bytes UpdateService::refused(ForwardedRequest& request, const Refusal& refusal) const {
  std::optional<ReplyDetail> detail;
  if (refusal.code) detail = ReplyDetail{*refusal.code, refusal.reason};
  return request.reply(refusal.rcode, false, seconds(), detail);
}

/// The update, if it must be forwarded to the primary. The signature is not checked, since perhaps
/// only the primary knows the key. Permission depends on the claimed key name. An unsigned update
/// needs a rule that allows it, because the primary sees this server's address in place of the
/// client's.
std::optional<ForwardedUpdate> UpdateService::to_forward(const ipc::Forward& request) const {
  if (forwarder_ == nullptr) return std::nullopt;
  dns::MessageReader reader(request.message);
  const auto header = reader.header();
  if (!header || header->qdcount != 1) return std::nullopt;
  const auto zone = reader.question();
  const auto tsig = dns::find_tsig(request.message);
  if (!zone || !tsig || zone->type != dns::RRType::kSOA || zone->rr_class != dns::RRClass::kIN)
    return std::nullopt;
  const config::Settings& settings = runtime_->settings;
  const auto index = settings.zones.find(zone->name);
  if (!index) return std::nullopt;
  const config::ZoneOptions& options = *settings.zones[*index].options;
  if (!options.is_secondary() || !options.forward_updates) return std::nullopt;
  const Requester requester{request.client.address, *tsig ? &(*tsig)->key_name : nullptr};
  const bool anybody = *tsig && options.allow_update.empty();
  if (!anybody && !may_update_something(options.allow_update, requester)) return std::nullopt;
  ForwardedUpdate update;
  update.zone = zone->name;
  update.source = settings.server.transfer_source;
  for (const std::string& name : options.primaries)
    if (const config::Remote* remote = settings.find_remote(name))
      update.primaries.insert(update.primaries.end(), remote->address.begin(),
                              remote->address.end());
  return update;
}

void UpdateService::pass_on(ipc::Forward&& request, ForwardedUpdate update,
                            const ForwardReply& reply) {
  auto original = std::make_shared<ipc::Forward>(std::move(request));
  update.message = original->message;
  const dns::Name zone = update.zone;
  forwarder_->forward(std::move(update), [this, original, zone, reply](Result<Bytes> answer) {
    if (answer) {
      if (const auto updates = forwarded_.one_more(clock_()))
        log::info("update_forwarded", "zone", to_text(zone), "client", to_text(original->client),
                  "rcode", to_text(static_cast<Rcode>((*answer)[3] & 0x0F)), "updates", *updates);
      return reply(std::move(*answer));
    }
    not_passed_on(zone, answer.error());
    // Signed if this server knows the key, too.
    const Request judged = ForwardedRequest::accept(runtime_, original->client,
                                                    std::move(original->message), seconds());
    reply(judged->verified() ? judged->reply(Rcode::kServFail, false, seconds())
                             : make_reply(judged->message(), Rcode::kServFail, false));
  });
}

void UpdateService::not_passed_on(const dns::Name& zone, const Error& error) {
  if (const auto updates = unforwarded_.one_more(clock_()))
    log::warning("updates_not_forwarded", "zone", to_text(zone), "reason", error.text, "updates",
                 *updates);
}

/// Logged as an error, since a full disk or store is the operator's concern; rate-limited, not one
/// line per update.
void UpdateService::failed(const dns::Name& zone, const Error& error) {
  ++counters_.failed;
  if (const auto updates = failed_.one_more(clock_()))
    log::error("updates_failed", "zone", to_text(zone), "reason", error.text, "updates", *updates);
}

// NOTIFY ----------------------------------------------------------------------------------------

namespace {

/// The serial of a SOA in the answer section; an error if that SOA is malformed.
Result<std::optional<dns::Serial>> serial_hint(dns::MessageReader& reader,
                                               const dns::Header& header) {
  std::optional<dns::Serial> serial;
  for (std::uint16_t i = 0; i < header.ancount; ++i) {
    auto record = reader.record();
    if (!record) return pass(record);
    if (record->type != dns::RRType::kSOA) continue;
    Bytes rdata;
    const auto decoded = dns::decompress_rdata(record->type, reader.message(), record->rdata_offset,
                                               record->rdata_length, rdata);
    if (!decoded) return tl::unexpected<Error>(decoded.error());
    serial = soa_serial(rdata);
  }
  return serial;
}

}  // namespace

/// RFC 1996 §3.10: each NOTIFY is answered. A zone that is unknown or primary here gives NOTAUTH,
/// as in Knot; a sender without permission gets REFUSED, as in BIND.
dns::Rcode UpdateService::judge_notify(const ForwardedRequest& request) {
  dns::MessageReader reader(request.message());
  auto header = reader.header();
  if (!header || header->qdcount != 1) return Rcode::kFormErr;
  auto question = reader.question();
  if (!question) return Rcode::kFormErr;
  if (question->rr_class != dns::RRClass::kIN) return Rcode::kNotAuth;
  if (question->type != dns::RRType::kSOA) return Rcode::kNotImp;
  const config::Settings& settings = request.runtime().settings;
  const auto index = settings.zones.find(question->name);
  if (!index || !settings.zones[*index].options->is_secondary()) return Rcode::kNotAuth;
  const zone::ZoneSettings rules = config::compile(*settings.zones[*index].options, settings);
  if (!zone::allowed(rules.allow_notify, request.client().address, request.key()))
    return Rcode::kRefused;
  auto serial = serial_hint(reader, *header);
  if (!serial) return Rcode::kFormErr;
  if (notify_ != nullptr) notify_->notified({question->name, request.client(), *serial});
  return Rcode::kNoError;
}

void UpdateService::notify(ipc::Forward&& forward, const ForwardReply& reply) {
  ++counters_.notifies;
  const Request request = accept(forward, reply);
  if (!request) return;
  const Rcode rcode = judge_notify(*request);
  log::debug("notify_received", "client", to_text(request->client()), "rcode", to_text(rcode));
  reply(request->reply(rcode, true, seconds()));
}

// Signed queries --------------------------------------------------------------------------------

void UpdateService::signed_query(ipc::Forward&& forward, const ForwardReply& reply) {
  ++counters_.signed_queries;
  const Request request = accept(forward, reply);
  if (!request) return;
  // Workers forward only signed queries, so an unsigned one is invalid.
  if (request->key() == nullptr) return reply({});
  reply(request->sign(std::move(forward.response), seconds()));
}

}  // namespace pando::manager
