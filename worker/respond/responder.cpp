#include "worker/respond/responder.h"

#include <algorithm>
#include <string_view>

#include "worker/answer/render.h"
#include "worker/answer/resolve.h"
#include "worker/respond/transfer_out.h"
#include "zone/settings/acl.h"

namespace pando::worker {

namespace {

using dns::Opcode;
using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ipc::Counter;

constexpr std::size_t kPlainUdpOctets = 512;  // RFC 1035 §4.2.1

struct Refusal {
  Rcode rcode;
  Ede detail;
};

/// Refuses question types that cannot be asked for. FORMERR: types that are never a QTYPE (RFC 9824
/// §3.2 for NXNAME). NOTIMP: meta queries of other services (RFC 2930 TKEY, RFC 883 MAILA and
/// MAILB).
std::optional<Refusal> refuse_type(RRType type) {
  const auto number = static_cast<std::uint16_t>(type);
  if (type == RRType::kOPT || type == RRType::kTSIG || type == RRType::kNXNAME || number == 0)
    return Refusal{Rcode::kFormErr, Ede::kInvalidQueryType};
  const bool meta = number >= 128 && number <= 255;
  if (meta && type != RRType::kANY && type != RRType::kAXFR && type != RRType::kIXFR)
    return Refusal{Rcode::kNotImp, Ede::kNotSupported};
  return std::nullopt;
}

/// The response's header: copies the fields that RFC 1035 §4.1.1 names, and CD (permitted by RFC
/// 6840 §5.9).
dns::Header response_header(const dns::Header& request, bool authoritative) {
  dns::Header header;
  header.id = request.id;
  header.qr = true;
  header.opcode = request.opcode;
  header.aa = authoritative;
  header.rd = request.rd;
  header.cd = request.cd;
  return header;
}

bool name_is(const dns::Name& name, std::string_view wire) {
  return name == dns::NameView(reinterpret_cast<const std::uint8_t*>(wire.data()), wire.size());
}

/// True when some rule could admit this address, whatever the key.
bool address_may_pass(const zone::Acl& acl, const IpAddress& address) {
  return std::any_of(acl.begin(), acl.end(), [&](const zone::AclRule& rule) {
    return !rule.deny && (!rule.address || rule.address->contains(address));
  });
}

}  // namespace

Responder::Responder(CounterArray& counters, SideTable side)
    : counting_(counters), side_(std::move(side)), keys_(std::make_shared<KeySet>()) {}

void Responder::set_keys(std::shared_ptr<const KeySet> keys) {
  keys_ = std::move(keys);
  cookies_.reset();
  if (auto made = dns::ServerCookies::create(keys_->cookie_secrets))
    cookies_.emplace(std::move(*made));
}

void Responder::begin(const zone::StoreView& snapshot, std::uint64_t now, bool manager) {
  snapshot_ = snapshot;
  settings_ = &cache_.server(snapshot);
  now_ = now;
  manager_ = manager;
}

Outcome Responder::handle(ByteView message, const Client& client, std::span<std::uint8_t> space) {
  space_ = space;
  udp_ = client.is_udp();
  held_ = false;
  session_.reset();
  expire_.reset();
  version_of_ = {};
  cookie_.reset();
  answer_.ede.reset();
  const ParseOutcome parsed = parse_request(message, request_);
  if (parsed.kind == ParseOutcome::Kind::kDrop) {
    counting_.add(Counter::kDropped);
    return {};
  }
  count_request(client);
  const bool cookie_is_well_formed = take_cookie(client);  // errors carry cookies, too
  if (parsed.kind == ParseOutcome::Kind::kError) {
    if (parsed.rcode == Rcode::kNotImp) return error(parsed.rcode, Ede::kNotSupported);
    return error(parsed.rcode);
  }
  if (!cookie_is_well_formed) return error(Rcode::kFormErr);
  if (!request_.has_question) return error(cookie_ ? Rcode::kNoError : Rcode::kFormErr);
  switch (request_.header.opcode) {
    case Opcode::kUpdate:
      return handle_update(client);
    case Opcode::kNotify:
      return handle_notify(client);
    default:
      return handle_query(client);
  }
}

/// RFC 7873 §5.2: false when the COOKIE option is malformed (§5.2.2: FORMERR).
bool Responder::take_cookie(const Client& client) {
  if (!cookies_ || !asks(dns::kOptionCookie)) return true;
  const auto reply = cookies_->answer(request_.edns->cookie, client.remote.address,
                                      static_cast<std::uint32_t>(now_));
  if (reply.state == dns::CookieState::kMalformed) return false;
  cookie_ = reply;
  return true;
}

void Responder::count_request(const Client& client) {
  constexpr Counter kByTransport[] = {Counter::kQueriesUdp, Counter::kQueriesTcp,
                                      Counter::kQueriesTls};
  counting_.add(kByTransport[static_cast<std::size_t>(client.transport)]);
  counting_.opcode(static_cast<std::uint8_t>(request_.header.opcode));
  if (!client.remote.address.is_v4()) counting_.add(Counter::kQueriesV6);
  if (request_.has_question && request_.header.opcode == Opcode::kQuery)
    counting_.type(static_cast<std::uint16_t>(request_.question.type));
  if (request_.tsig) counting_.add(Counter::kQueriesTsig);
  if (!request_.edns) return;
  counting_.add(Counter::kQueriesEdns);
  if (request_.edns->dnssec_ok) counting_.add(Counter::kQueriesDo);
}

// Queries
// ------------------------------------------------------------------------------------------

Outcome Responder::handle_query(const Client& client) {
  if (auto failed = check_signature(true)) return *failed;
  const dns::Question& question = request_.question;
  if (question.rr_class == RRClass::kCH) return answer_chaos();
  if (question.rr_class != RRClass::kIN && question.rr_class != RRClass::kANY)
    return error(Rcode::kRefused, Ede::kNotAuthoritative);
  if (const auto refused = refuse_type(question.type))
    return error(refused->rcode, refused->detail);
  if (question.type == RRType::kAXFR || question.type == RRType::kIXFR)
    return start_transfer(client);
  const zone::ZoneView zone = choose_zone(snapshot_, question.name, question.type);
  const DecodedZoneSettings* rules = nullptr;
  if (zone) {
    rules = cache_.zone(zone);
    if (rules == nullptr) return error(Rcode::kServFail);
    if (!rules->everybody_may_query &&
        !zone::allowed(rules->settings.allow_query, client.remote.address, key_name()))
      return error(Rcode::kRefused, Ede::kProhibited);
  }
  return answer_zone(client, zone, rules);
}

Outcome Responder::answer_zone(const Client& client, const zone::ZoneView& zone,
                               const DecodedZoneSettings* rules) {
  const dns::Question& question = request_.question;
  ResolveOptions options;
  options.dnssec_ok = request_.edns && request_.edns->dnssec_ok;
  options.minimal_responses = settings_->minimal_responses;
  options.zone_expired = zone && expired(zone);
  options.put_off_referrals = true;
  answer_.clear();
  resolve(zone, question, options, hasher_, answer_);
  if (answer_.rcode == Rcode::kRefused && client.is_udp() && !may_send_error()) {
    counting_.add(Counter::kErrorsLimited);
    counting_.add(Counter::kDropped);
    return {};
  }
  if (auto limited = limit_rate(client, zone)) return *limited;
  if (zone && question.type == RRType::kSOA && asks(dns::kOptionExpire) && answer_.aa &&
      question.name == zone.apex())
    expire_ = expire_of(zone, *rules);
  // RFC 9660 §3.2: also with referrals, name errors and failures, but only for loaded zones.
  if (asks(dns::kOptionZoneVersion) && zone && zone.loaded()) version_of_ = zone;
  // RFC 1035 §6.2: an answer to class ANY is never authoritative, since other classes might have
  // more records.
  if (question.rr_class == RRClass::kANY) answer_.aa = false;
  dns::MessageWriter writer = new_response(answer_.aa);
  const dns::OptBuilder opt = make_opt(answer_.rcode);
  const std::size_t room = (request_.edns ? opt.size() : 0) + signature_room();
  writer.reserve(room);
  const bool truncated =
      answer_.cut ? put_referral(zone, options, writer) : render(answer_, question, writer);
  if (truncated) counting_.add(Counter::kTruncated);
  writer.release(room);
  return finished(writer, opt, answer_.rcode);
}

/// True when a server's name shares more of its end with QNAME than the cut. Compression makes that
/// name shorter in this message than in the cached referral, so it may fit here.
bool Responder::names_below_cut_help(const zone::RecordView& cut, dns::NameView cut_name) const {
  const dns::NameView qname = request_.question.name.view();
  const std::size_t deeper = qname.label_count() - cut_name.label_count();
  if (deeper == 0) return false;
  const dns::NameView child = qname.ancestor(deeper - 1);
  return cut.find(RRType::kNS).has_name_at_or_below(child);
}

/// Puts the cached referral, or renders it now; returns true when the referral was truncated.
bool Responder::put_referral(const zone::ZoneView& zone, const ResolveOptions& options,
                             dns::MessageWriter& writer) {
  const ReferralCache::Key key{zone.side_index(), zone.data_version(), options.dnssec_ok,
                               answer_.cut_name};
  using Put = dns::MessageTemplate::Put;
  const auto mark = writer.mark();
  const zone::RecordView cut = answer_.cut;
  const Put put = referrals_.put(key, writer);
  if (put == Put::kComplete) return false;
  if (put == Put::kTruncated && !names_below_cut_help(cut, key.cut)) {
    writer.set_tc();
    return true;
  }
  writer.roll_back(mark);
  complete_referral(zone, request_.question, options, hasher_, answer_);
  const bool truncated = render(answer_, request_.question, writer);
  if (answer_.rcode == Rcode::kNoError && referrals_.wants(key)) {
    answer_.clear();
    answer_.cut = cut;
    answer_.cut_name = key.cut;
    const dns::Question question{dns::Name(key.cut), RRType::kNS, RRClass::kIN};
    complete_referral(zone, question, options, hasher_, answer_);
    referrals_.keep(key, answer_, question);
  }
  return truncated;
}

/// Decides on an answer above its client's rate limit. A client that has proven its address (TCP, a
/// valid cookie, a signature) is not the victim of a forged address.
std::optional<Outcome> Responder::limit_rate(const Client& client, const zone::ZoneView& zone) {
  const zone::RateLimit& rules = settings_->rate_limit;
  if (rules.responses == 0 || !client.is_udp()) return std::nullopt;
  const bool proven = request_.tsig || (cookie_ && cookie_->state == dns::CookieState::kValid);
  if (proven || is_exempt(rules, client.remote.address)) return std::nullopt;
  const auto verdict =
      rate_limiter_.judge(rules, client.remote.address, kind_of(zone, answer_), now_);
  if (verdict == RateLimiter::Verdict::kSend) return std::nullopt;
  counting_.add(Counter::kRateLimited);
  if (verdict == RateLimiter::Verdict::kDrop) {
    counting_.add(Counter::kDropped);
    return Outcome{};
  }
  counting_.add(Counter::kRateSlipped);
  counting_.add(Counter::kTruncated);
  dns::MessageWriter writer = new_response(answer_.aa);
  writer.set_tc();
  return finished(writer, make_opt(answer_.rcode), answer_.rcode);
}

/// RFC 4892 §3: the server's identity; by custom also its version. A value that the configuration
/// does not set is refused.
Outcome Responder::answer_chaos() {
  using namespace std::string_view_literals;
  const dns::Question& question = request_.question;
  const bool asks_identity =
      name_is(question.name, "\2id\6server\0"sv) || name_is(question.name, "\10hostname\4bind\0"sv);
  const bool asks_text = question.type == RRType::kTXT || question.type == RRType::kANY;
  const bool asks_version = name_is(question.name, "\7version\4bind\0"sv) ||
                            name_is(question.name, "\7version\6server\0"sv);
  const std::string& told = asks_identity ? settings_->identity : settings_->version;
  if (!(asks_identity || asks_version) || !asks_text || told.empty())
    return error(Rcode::kRefused, Ede::kNotAuthoritative);
  Bytes text;
  const std::size_t length = std::min<std::size_t>(told.size(), 255);
  text.push_back(static_cast<std::uint8_t>(length));
  text.insert(text.end(), told.begin(), told.begin() + static_cast<long>(length));
  dns::MessageWriter writer = new_response(true);
  const bool fits = writer.put_record(dns::Section::kAnswer, writer.question_name(), RRType::kTXT,
                                      RRClass::kCH, 0, text);
  if (!fits) writer.set_tc();
  return finished(writer, make_opt(Rcode::kNoError), Rcode::kNoError);
}

// Transfers
// ----------------------------------------------------------------------------------------

Outcome Responder::start_transfer(const Client& client) {
  const bool incremental = request_.question.type == RRType::kIXFR;
  // RFC 5936 §4.2: AXFR over UDP is not defined. RFC 1995 §3: an IXFR names the client's version.
  if (!incremental && client.is_udp()) return error(Rcode::kFormErr);
  if (incremental && !request_.client_serial) return error(Rcode::kFormErr);
  const zone::ZoneView zone = snapshot_.zone_at(request_.question.name);
  // RFC 5936 §2.2.1
  if (!zone) return refuse_transfer(Rcode::kNotAuth, Ede::kNotAuthoritative);
  const DecodedZoneSettings* rules = cache_.zone(zone);
  if (rules == nullptr) return refuse_transfer(Rcode::kServFail, Ede::kInvalidData);
  if (!zone::allowed(rules->settings.allow_transfer, client.remote.address, key_name()))
    return refuse_transfer(Rcode::kRefused, Ede::kProhibited);
  if (!zone.loaded()) return refuse_transfer(Rcode::kServFail, Ede::kNotReady);
  if (expired(zone)) return refuse_transfer(Rcode::kServFail, Ede::kInvalidData);
  if (asks(dns::kOptionExpire)) expire_ = expire_of(zone, *rules);
  // RFC 1995 §2: a client that is up to date gets one SOA. §4: so does a client over UDP when the
  // difference sequences do not fit there.
  const bool current = incremental && !zone.serial().ahead_of(*request_.client_serial);
  if (current) return answer_soa(zone);
  if (client.is_udp()) return answer_difference(zone);
  plan_transfer(zone);
  return {Action::kTransfer, 0, {}};
}

Outcome Responder::refuse_transfer(Rcode rcode, Ede detail) {
  counting_.add(Counter::kTransfersRefused);
  return error(rcode, detail);
}

/// Puts the difference sequences into one datagram, if they fit.
Outcome Responder::answer_difference(const zone::ZoneView& zone) {
  auto stream = DifferenceStream::since(zone, *request_.client_serial);
  if (!stream) return answer_soa(zone);
  dns::MessageWriter writer = new_response(true);
  writer.keep_case();
  const dns::OptBuilder opt = make_opt(Rcode::kNoError);
  const std::size_t room = (request_.edns ? opt.size() : 0) + signature_room();
  writer.reserve(room);
  if (stream->fill(writer) != StreamStep::kDone) return answer_soa(zone);
  counting_.add(Counter::kTransfersIncremental);
  writer.release(room);
  return finished(writer, opt, Rcode::kNoError);
}

Outcome Responder::answer_soa(const zone::ZoneView& zone) {
  const zone::RRsetView soa = zone.soa();
  if (soa.count() == 0) return refuse_transfer(Rcode::kServFail, Ede::kInvalidData);
  counting_.add(Counter::kTransfersCurrent);
  dns::MessageWriter writer = new_response(true);
  const dns::OptBuilder opt = make_opt(Rcode::kNoError);
  const std::size_t room = (request_.edns ? opt.size() : 0) + signature_room();
  writer.reserve(room);
  if (!writer.put_record(dns::Section::kAnswer, writer.question_name(), RRType::kSOA, RRClass::kIN,
                         soa.ttl().seconds, soa.first_rdata())) {
    writer.set_tc();
    counting_.add(Counter::kTruncated);
  }
  writer.release(room);
  return finished(writer, opt, Rcode::kNoError);
}

void Responder::plan_transfer(const zone::ZoneView& zone) {
  plan_ = {};
  plan_.header = response_header(request_.header, true);
  plan_.question = request_.question;
  plan_.apex = dns::Name(zone.apex());
  plan_.edns = request_.edns.has_value();
  plan_.udp_payload = settings_->udp_payload;
  plan_.expire = expire_;
  if (request_.question.type == RRType::kIXFR) plan_.since = request_.client_serial;
  plan_.keys = keys_;
  plan_.session = std::move(session_);
  session_.reset();
  if (held_) plan_.held_request.assign(request_.message.begin(), request_.message.end());
}

bool Responder::expired(const zone::ZoneView& zone) const {
  const auto* entry = side_(zone.side_index());
  if (entry == nullptr) return false;
  const std::uint64_t at = entry->expires_at.load(std::memory_order_relaxed);
  return at != 0 && at <= now_;  // the manager keeps it 0 for primary zones
}

/// RFC 7314 §3.3: a primary sends the SOA's EXPIRE, a secondary the remaining time.
std::optional<std::uint32_t> Responder::expire_of(const zone::ZoneView& zone,
                                                  const DecodedZoneSettings& rules) const {
  const ByteView soa = zone.soa().first_rdata();
  constexpr std::size_t kExpireFromEnd = 8;
  if (soa.size() < 22) return std::nullopt;
  const std::uint32_t interval = load_be32(soa.data() + soa.size() - kExpireFromEnd);
  const auto* entry = side_(zone.side_index());
  if (!rules.settings.is_secondary || entry == nullptr) return interval;
  const std::uint64_t at = entry->expires_at.load(std::memory_order_relaxed);
  if (at <= now_) return std::nullopt;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(at - now_, interval));
}

// Requests for the manager
// -------------------------------------------------------------------------

Outcome Responder::handle_update(const Client& client) {
  const dns::Question& question = request_.question;
  const zone::ZoneView zone =
      question.rr_class == RRClass::kIN ? snapshot_.zone_at(question.name) : zone::ZoneView();
  const DecodedZoneSettings* rules = zone ? cache_.zone(zone) : nullptr;
  const bool secondary = rules != nullptr && rules->settings.is_secondary;
  const bool for_primary = secondary && passes_on(rules->settings, client);
  const bool for_manager = for_primary || (rules != nullptr && !secondary &&
                                           forwardable(rules->settings.allow_update, client));
  // A request forwarded to a primary may be signed with any key: perhaps the primary alone has that
  // key.
  if (for_primary)
    held_ = request_.tsig && keys_->holds(request_.tsig->key_name);
  else if (auto failed = check_signature(!for_manager))
    return *failed;
  if (question.type != RRType::kSOA) return error(Rcode::kFormErr);  // RFC 2136 §3.1.1
  if (!zone) return error(Rcode::kNotAuth, Ede::kNotAuthoritative);
  if (rules == nullptr) return error(Rcode::kServFail);
  // RFC 2136 §6 lets a secondary forward; a secondary that does not forward answers REFUSED, as
  // BIND does.
  if (!for_manager) return error(Rcode::kRefused, Ede::kProhibited);
  return forward_or_fail(ipc::ForwardKind::kUpdate);
}

/// Filters requests that the manager would refuse; the manager's UpdateService::to_forward()
/// decides.
bool Responder::passes_on(const zone::ZoneSettings& rules, const Client& client) const {
  if (!rules.forward_updates) return false;
  if (request_.tsig && rules.allow_update.empty()) return true;
  return zone::could_allow(rules.allow_update, client.remote.address, key_name());
}

Outcome Responder::handle_notify(const Client& client) {
  const dns::Question& question = request_.question;
  const zone::ZoneView zone =
      question.rr_class == RRClass::kIN ? snapshot_.zone_at(question.name) : zone::ZoneView();
  const DecodedZoneSettings* rules = zone ? cache_.zone(zone) : nullptr;
  const bool secondary = rules != nullptr && rules->settings.is_secondary;
  const bool for_manager = secondary && forwardable(rules->settings.allow_notify, client);
  if (auto failed = check_signature(!for_manager)) return *failed;
  if (!zone) return error(Rcode::kNotAuth, Ede::kNotAuthoritative);
  if (rules == nullptr) return error(Rcode::kServFail);
  if (!secondary) return error(Rcode::kNotAuth);  // this server is the primary; as Knot
  if (!for_manager) return error(Rcode::kRefused, Ede::kProhibited);
  return forward_or_fail(ipc::ForwardKind::kNotify);
}

/// True when the manager may reach another result than "refused", or has to sign the refusal. The
/// key's name is only claimed here; the manager verifies the signature.
bool Responder::forwardable(const zone::Acl& rules, const Client& client) const {
  if (zone::could_allow(rules, client.remote.address, key_name())) return true;
  return request_.tsig && address_may_pass(rules, client.remote.address);
}

Outcome Responder::forward_or_fail(ipc::ForwardKind kind) {
  if (!manager_) return not_ready();
  constexpr Counter kByKind[] = {Counter::kForwardedUpdates, Counter::kForwardedNotifies,
                                 Counter::kForwardedQueries};
  counting_.add(kByKind[static_cast<std::size_t>(kind)]);
  return {Action::kForward, 0, kind};
}

/// Answers a request that needs an absent manager. RFC 1996 §3.6: any answer to a NOTIFY over UDP
/// ends its repetition, so such a NOTIFY gets none.
Outcome Responder::not_ready() {
  held_ = false;  // without the manager the answer cannot be signed
  counting_.add(Counter::kForwardsFailed);
  if (udp_ && request_.header.opcode == Opcode::kNotify) {
    counting_.add(Counter::kDropped);
    return {};
  }
  return error(Rcode::kServFail, Ede::kNotReady);
}

// Signatures
// ---------------------------------------------------------------------------------------

/// RFC 8945 §5.2. The manager verifies signatures of the keys that only it has; no answer is sent
/// before. UPDATE and NOTIFY for the manager (`verify_here` false) are verified there in any case.
/// Only an unknown key is answered at once.
std::optional<Outcome> Responder::check_signature(bool verify_here) {
  if (!request_.tsig) return std::nullopt;
  held_ = keys_->holds(request_.tsig->key_name);
  if (held_ && verify_here && !manager_) return not_ready();
  const bool known = held_ || keys_->shared.find(request_.tsig->key_name) != nullptr;
  if (held_ || (known && !verify_here)) return std::nullopt;
  const auto verdict =
      dns::TsigSession::verify_request(request_.message, *request_.tsig, keys_->shared, now_);
  session_ = dns::TsigSession::for_response(verdict);
  if (verdict.rcode == Rcode::kNoError) return std::nullopt;
  return error(verdict.rcode);
}

const dns::Name* Responder::key_name() const noexcept {
  return request_.tsig ? &request_.tsig->key_name : nullptr;
}

std::size_t Responder::signature_room() const noexcept {
  if (session_) return session_->overhead();
  if (!held_) return 0;
  // RFC 8945 §4.2: owner, fixed fields, algorithm, times, the longest MAC, Other Data.
  constexpr std::size_t kFixed = 10 + 6 + 2 + 2 + 2 + 2 + 2 + 64 + 6;
  return request_.tsig->key_name.size() + request_.tsig->algorithm_name.size() + kFixed;
}

// Messages
// -----------------------------------------------------------------------------------------

/// RFC 6891 §6.2.3 to §6.2.5: the smaller of the client's and this server's limits; a limit below
/// 512 counts as 512.
std::size_t Responder::limit() const noexcept {
  if (!udp_) return std::min(space_.size(), dns::kMaxMessageOctets);
  if (!request_.edns) return kPlainUdpOctets;
  const std::size_t ours = std::min<std::size_t>(settings_->udp_payload, kUdpSpace);
  return std::max(kPlainUdpOctets, std::min<std::size_t>(ours, request_.edns->udp_payload));
}

dns::MessageWriter Responder::new_response(bool authoritative) {
  dns::MessageWriter writer(space_, limit());
  writer.put_header(response_header(request_.header, authoritative));
  if (request_.has_question) {
    const dns::Question& question = request_.question;
    // 12 + 255 + 4 octets always fit into 512.
    if (!writer.put_question(question.name, question.type, question.rr_class)) writer.set_tc();
  }
  return writer;
}

bool Responder::asks(std::uint16_t option) const noexcept {
  return request_.edns && request_.edns->has(option);
}

dns::OptBuilder Responder::make_opt(Rcode rcode) const {
  const bool dnssec_ok = request_.edns && request_.edns->dnssec_ok;
  dns::OptBuilder opt(settings_->udp_payload, rcode, dnssec_ok);
  if (!request_.edns) return opt;
  if (!settings_->identity.empty() && asks(dns::kOptionNsid)) opt.add_nsid(settings_->identity);
  if (expire_) opt.add_expire(*expire_);
  if (version_of_)
    opt.add_zone_version(static_cast<std::uint8_t>(version_of_.apex().label_count()),
                         version_of_.serial());
  if (cookie_) opt.add_cookie(cookie_->option);
  if (!udp_ && asks(dns::kOptionKeepalive))
    opt.add_keepalive(
        static_cast<std::uint16_t>(std::min<std::uint32_t>(settings_->tcp_idle_ms / 100, 65535)));
  if (answer_.ede)
    opt.add_extended_error(
        static_cast<dns::ExtendedError>(static_cast<std::uint16_t>(*answer_.ede)));
  return opt;
}

/// A valid cookie proves the client's address (RFC 7873 §5.2.5), so the error cannot flood a
/// victim.
bool Responder::may_send_error() noexcept {
  const bool known = cookie_ && cookie_->state == dns::CookieState::kValid;
  return known || error_limit_.allow(now_);
}

Outcome Responder::error(Rcode rcode, Ede detail) {
  answer_.ede = detail;
  return error(rcode);
}

Outcome Responder::error(Rcode rcode) {
  if (udp_ && rcode != Rcode::kServFail && !may_send_error()) {
    counting_.add(Counter::kErrorsLimited);
    counting_.add(Counter::kDropped);
    return {};
  }
  dns::MessageWriter writer = new_response(false);
  return finished(writer, make_opt(rcode), rcode);
}

/// Adds OPT and signature and decides whether worker or manager completes the response.
Outcome Responder::finished(dns::MessageWriter& writer, const dns::OptBuilder& opt, Rcode rcode) {
  writer.set_rcode(rcode);
  // RFC 6891 §6.1.1: an OPT in the response when, and only when, there was one in the request.
  if (request_.edns && !writer.put_raw_additional(opt.record())) writer.set_tc();
  std::size_t size = writer.finish().size();
  counting_.rcode(static_cast<std::uint16_t>(rcode));
  if (held_) {
    Outcome outcome = forward_or_fail(ipc::ForwardKind::kSignedQuery);
    if (outcome.action == Action::kForward) outcome.size = size;  // a failure has its own message
    return outcome;
  }
  if (session_) {
    auto signed_size = session_->sign(space_, size, now_);
    if (!signed_size) {
      counting_.add(Counter::kDropped);
      return {};
    }
    size = *signed_size;
  }
  return {Action::kRespond, size, {}};
}

std::size_t make_servfail(ByteView message, std::span<std::uint8_t> space) {
  Request request;
  if (parse_request(message, request).kind == ParseOutcome::Kind::kDrop) return 0;
  dns::MessageWriter writer(space, kPlainUdpOctets);
  writer.put_header(response_header(request.header, false));
  if (request.has_question &&
      !writer.put_question(request.question.name, request.question.type, request.question.rr_class))
    return 0;
  writer.set_rcode(Rcode::kServFail);
  if (request.edns) {
    const dns::OptBuilder opt(1232, Rcode::kServFail, request.edns->dnssec_ok);
    if (!writer.put_raw_additional(opt.record())) return 0;
  }
  return writer.finish().size();
}

std::size_t make_failure(const ipc::Forward& request, std::span<std::uint8_t> space) {
  const bool notify = request.kind == ipc::ForwardKind::kNotify;
  if (notify && request.transport == ipc::Transport::kUdp) return 0;
  return make_servfail(request.message, space);
}

}  // namespace pando::worker
