#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "dns/message/message_header.h"
#include "dns/tsig/tsig_mac.h"
#include "dns/tsig/tsig_record.h"

namespace pando::dns {

namespace {

using PreparedKey = TsigKeyring::PreparedKey;

constexpr std::uint16_t kFudge = 300;                // RFC 8945 §10: recommended
constexpr unsigned kMaxUnsignedMessages = 99;        // RFC 8945 §5.3.1
constexpr std::uint64_t kTimeMask = 0xFFFFFFFFFFFF;  // 48 bits

/// The message at the time of signing (RFC 8945 §4.3.2): without the TSIG, which is not counted,
/// and with the original ID.
void digest_signed_message(HmacContext& mac, ByteView message, const TsigRecord& tsig) {
  std::uint8_t header[kHeaderOctets];
  std::memcpy(header, message.data(), kHeaderOctets);
  store_be16(header, tsig.original_id);
  store_be16(header + 10, static_cast<std::uint16_t>(load_be16(header + 10) - 1));
  mac.update(header);
  mac.update(message.subspan(kHeaderOctets, tsig.offset - kHeaderOctets));
}

/// RFC 8945 §4.3.3; the prepared key has the names in canonical form. The record names one of its
/// algorithms.
void digest_variables(HmacContext& mac, const PreparedKey& key, const TsigRecord& tsig) {
  std::uint8_t octets[2 * kMaxNameOctets + 18];
  std::uint8_t* p = octets;
  std::memcpy(p, key.name.data(), key.name.size());
  p += key.name.size();
  store_be16(p, static_cast<std::uint16_t>(RRClass::kANY));
  store_be32(p + 2, 0);  // TTL
  p += 6;
  const Name& algorithm = *key.algorithm_named(tsig.algorithm_name);
  std::memcpy(p, algorithm.data(), algorithm.size());
  p += algorithm.size();
  store_be48(p, tsig.time_signed);
  store_be16(p + 6, tsig.fudge);
  store_be16(p + 8, tsig.error);
  store_be16(p + 10, static_cast<std::uint16_t>(tsig.other.size()));
  mac.update({octets, p + 12});
  mac.update(tsig.other);
}

/// RFC 8945 §4.3.3.1: later messages of a stream digest only the timers, not all variables.
void digest_timers(HmacContext& mac, const TsigRecord& tsig) {
  std::uint8_t octets[8];
  store_be48(octets, tsig.time_signed);
  store_be16(octets + 6, tsig.fudge);
  mac.update(octets);
}

/// A MAC of an earlier message, with its length (RFC 8945 §4.3.1).
void digest_prior_mac(HmacContext& mac, ByteView prior) {
  std::uint8_t size[2];
  store_be16(size, static_cast<std::uint16_t>(prior.size()));
  mac.update(size);
  mac.update(prior);
}

/// RFC 8945 §5.2.2.1: a MAC longer than the algorithm's or too short is a format error.
bool mac_size_is_valid(const PreparedKey& key, const Name& algorithm, std::size_t size) noexcept {
  return size <= key.longest_mac(algorithm) && size >= key.shortest_mac;
}

bool mac_matches(HmacContext& mac, ByteView received) {
  const TsigMac computed = mac.finish(received.size());
  return computed.size == received.size() &&
         CRYPTO_memcmp(computed.octets.data(), received.data(), received.size()) == 0;
}

/// RFC 8945 §5.2.3.
bool time_is_near(const TsigRecord& tsig, std::uint64_t now) noexcept {
  const std::uint64_t distance =
      now > tsig.time_signed ? now - tsig.time_signed : tsig.time_signed - now;
  return distance <= tsig.fudge;
}

void refuse(TsigVerdict& verdict, Rcode tsig_error) noexcept {
  verdict.rcode = Rcode::kNotAuth;
  verdict.tsig_error = tsig_error;
}

/// RFC 8945 §3 names: 16 is BADSIG here, not BADVERS.
std::string tsig_error_text(std::uint16_t error) {
  switch (static_cast<Rcode>(error)) {
    case Rcode::kBadSig:
      return "BADSIG";
    case Rcode::kBadKey:
      return "BADKEY";
    case Rcode::kBadTime:
      return "BADTIME";
    case Rcode::kBadTrunc:
      return "BADTRUNC";
    default:
      return fmt::format("error {}", error);
  }
}

Bytes octets_of_time(std::uint64_t time) {
  Bytes octets(6);
  store_be48(octets.data(), time);
  return octets;
}

}  // namespace

struct TsigSession::Impl {
  enum class Role : std::uint8_t { kClient, kServer };

  Role role;
  const PreparedKey* key = nullptr;  // null: the response carries no MAC
  bool no_tsig = false;              // the response carries no TSIG at all
  TsigRecord shown;                  // names, error and times for the next record
  Bytes prior_mac;                   // of the request, then of the last signed message
  bool stream = false;               // after the first signed response: timers only
  unsigned unsigned_messages = 0;    // since the last signed one
  HmacContext running;               // prior MAC and the unsigned messages since then

  [[nodiscard]] HmacContext start() const {
    HmacContext mac = key->keyed.duplicate();
    digest_prior_mac(mac, prior_mac);
    return mac;
  }
  [[nodiscard]] HmacContext resume() const { return running ? running.duplicate() : start(); }

  void digest_tail(HmacContext& mac, const TsigRecord& tsig) const {
    if (stream)
      digest_timers(mac, tsig);
    else
      digest_variables(mac, *key, tsig);
  }

  Bytes mac_of(ByteView message);
  Status accept_unsigned(ByteView message);
  Status check_signed(ByteView message, const TsigRecord& tsig, std::uint64_t now) const;
};

/// MAC of a message without TSIG, for the record `shown`. A request's digest starts anew each time,
/// so that the request may be sent again at another time.
Bytes TsigSession::Impl::mac_of(ByteView message) {
  if (key == nullptr) return {};
  HmacContext mac = role == Role::kClient ? key->keyed.duplicate() : start();
  mac.update(message);
  digest_tail(mac, shown);
  const TsigMac octets = mac.finish(key->mac_octets);
  return {octets.view().begin(), octets.view().end()};
}

TsigSession::TsigSession() : impl_(std::make_unique<Impl>()) {}
TsigSession::TsigSession(TsigSession&&) noexcept = default;
TsigSession& TsigSession::operator=(TsigSession&&) noexcept = default;
TsigSession::~TsigSession() = default;

// RFC 8945 §5.2: the checks in this order: key, MAC, time, truncation.
TsigVerdict TsigSession::verify_request(ByteView message, const TsigRecord& record,
                                        const TsigKeyring& keys, std::uint64_t now) {
  TsigVerdict verdict;
  verdict.record = record;
  const PreparedKey* key = keys.find(record.key_name);
  const Name* algorithm = key == nullptr ? nullptr : key->algorithm_named(record.algorithm_name);
  if (algorithm == nullptr) {
    refuse(verdict, Rcode::kBadKey);
    return verdict;
  }
  verdict.key = key;
  if (!mac_size_is_valid(*key, *algorithm, record.mac.size())) {
    verdict.rcode = Rcode::kFormErr;
    return verdict;
  }
  HmacContext mac = key->keyed.duplicate();
  digest_signed_message(mac, message, record);
  digest_variables(mac, *key, record);
  if (!mac_matches(mac, record.mac))
    refuse(verdict, Rcode::kBadSig);
  else if (!time_is_near(record, now))
    refuse(verdict, Rcode::kBadTime);
  else if (record.mac.size() < key->least_mac_octets)
    refuse(verdict, Rcode::kBadTrunc);
  return verdict;
}

TsigSession TsigSession::for_response(const TsigVerdict& verdict) {
  TsigSession session;
  Impl& impl = *session.impl_;
  impl.role = Impl::Role::kServer;
  impl.no_tsig = verdict.rcode == Rcode::kFormErr;
  // RFC 8945 §5.3.2: a response to an error of key or MAC must not be signed.
  const bool trusted = verdict.tsig_error != Rcode::kBadKey && verdict.tsig_error != Rcode::kBadSig;
  impl.key = trusted ? verdict.key : nullptr;
  impl.shown.key_name = verdict.record.key_name;
  impl.shown.algorithm_name = verdict.record.algorithm_name;
  impl.shown.error = static_cast<std::uint16_t>(verdict.tsig_error);
  impl.shown.time_signed = verdict.record.time_signed;
  impl.shown.fudge = verdict.tsig_error == Rcode::kBadTime ? verdict.record.fudge : kFudge;
  impl.prior_mac = verdict.record.mac;
  return session;
}

TsigSession TsigSession::for_request(const TsigKeyring::PreparedKey& key) {
  TsigSession session;
  Impl& impl = *session.impl_;
  impl.role = Impl::Role::kClient;
  impl.key = &key;
  impl.shown.key_name = key.name;
  impl.shown.algorithm_name = key.algorithm;
  impl.shown.fudge = kFudge;
  return session;
}

std::size_t TsigSession::overhead() const noexcept {
  if (impl_->no_tsig) return 0;
  const std::size_t time = static_cast<Rcode>(impl_->shown.error) == Rcode::kBadTime ? 6 : 0;
  return impl_->shown.key_name.size() + kTsigFixedOctets + impl_->shown.algorithm_name.size() +
         (impl_->key == nullptr ? 0 : impl_->key->mac_octets) + time;
}

Status TsigSession::sign(Bytes& message, std::uint64_t now) {
  const std::size_t size = message.size();
  message.resize(size + overhead());
  const auto signed_size = sign(std::span(message), size, now);
  message.resize(signed_size ? *signed_size : size);
  if (!signed_size) return tl::unexpected(signed_size.error());
  return {};
}

Result<std::size_t> TsigSession::sign(std::span<std::uint8_t> space, std::size_t size,
                                      std::uint64_t now) {
  Impl& impl = *impl_;
  if (impl.no_tsig) return size;
  if (size < kHeaderOctets) return fail(Errc::kInvalid, "no message to sign");
  const std::uint16_t arcount = load_be16(space.data() + 10);
  const std::size_t end = size + overhead();
  if (end > std::min(space.size(), kMaxMessageOctets) || arcount == 0xFFFF)
    return fail(Errc::kFull, "no room for TSIG behind {} octets", size);

  TsigRecord& shown = impl.shown;
  shown.original_id = load_be16(space.data());
  // RFC 8945 §5.2.3: a BADTIME response has the client's time, so that it verifies, and the
  // server's time in Other Data.
  if (static_cast<Rcode>(shown.error) == Rcode::kBadTime)
    shown.other = octets_of_time(now);
  else
    shown.time_signed = now & kTimeMask;
  shown.mac = impl.mac_of(space.first(size));
  put_tsig(shown, space.data() + size);
  store_be16(space.data() + 10, static_cast<std::uint16_t>(arcount + 1));
  impl.prior_mac = shown.mac;
  impl.stream = impl.role == Impl::Role::kServer;
  return end;
}

Status TsigSession::verify_response(ByteView message, std::uint64_t now) {
  auto tsig = find_tsig(message);
  if (!tsig) return pass(tsig);
  if (!*tsig) return impl_->accept_unsigned(message);
  if (auto checked = impl_->check_signed(message, **tsig, now); !checked) return checked;
  impl_->prior_mac = std::move((*tsig)->mac);
  impl_->stream = true;
  impl_->unsigned_messages = 0;
  impl_->running = HmacContext();
  return {};
}

Status TsigSession::finish() {
  if (!impl_->stream) return fail(Errc::kDenied, "response is not signed");
  if (impl_->unsigned_messages > 0) return fail(Errc::kDenied, "last message is not signed");
  return {};
}

/// RFC 8945 §5.3.1: the first message of a response must be signed, later ones at least each 100th.
Status TsigSession::Impl::accept_unsigned(ByteView message) {
  if (!stream) return fail(Errc::kDenied, "response is not signed");
  if (unsigned_messages >= kMaxUnsignedMessages)
    return fail(Errc::kDenied, "more than {} messages without TSIG", kMaxUnsignedMessages);
  if (!running) running = start();
  running.update(message);
  ++unsigned_messages;
  return {};
}

/// RFC 8945 §5.4. A reported error is accepted only if it is signed, or if its kind cannot be
/// signed.
Status TsigSession::Impl::check_signed(ByteView message, const TsigRecord& tsig,
                                       std::uint64_t now) const {
  if (!(tsig.key_name == key->name) || !(tsig.algorithm_name == key->algorithm))
    return fail(Errc::kDenied, "response is signed with another key");
  if (tsig.mac.empty() && tsig.error != 0)
    return fail(Errc::kDenied, "server refuses our TSIG: {}", tsig_error_text(tsig.error));
  if (!mac_size_is_valid(*key, key->algorithm, tsig.mac.size()))
    return fail(Errc::kDenied, "response has a MAC of {} octets", tsig.mac.size());
  HmacContext mac = resume();
  digest_signed_message(mac, message, tsig);
  digest_tail(mac, tsig);
  if (!mac_matches(mac, tsig.mac)) return fail(Errc::kDenied, "BADSIG: response does not verify");
  if (tsig.error != 0)
    return fail(Errc::kDenied, "server refuses our TSIG: {}", tsig_error_text(tsig.error));
  if (!time_is_near(tsig, now))
    return fail(Errc::kDenied, "BADTIME: response was signed at {}, now is {}", tsig.time_signed,
                now);
  if (tsig.mac.size() < key->least_mac_octets)
    return fail(Errc::kDenied, "BADTRUNC: response has a MAC of {} octets", tsig.mac.size());
  return {};
}

}  // namespace pando::dns
