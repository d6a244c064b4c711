#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "dns/dnssec/nsec3_hash.h"
#include "dns/message/cookie.h"
#include "dns/tsig/tsig.h"
#include "shm/store.h"
#include "worker/answer/resolve.h"
#include "worker/respond/counting.h"
#include "worker/respond/error_limit.h"
#include "worker/respond/key_set.h"
#include "worker/respond/rate_limit.h"
#include "worker/respond/referral_cache.h"
#include "worker/respond/request.h"
#include "worker/respond/settings_cache.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Smallest space that handle() may be given, hence the largest UDP response.
inline constexpr std::size_t kUdpSpace = 4096;

/// Next step for a request.
enum class Action : std::uint8_t {
  kDrop,      ///< nothing is sent
  kRespond,   ///< send the octets in the space
  kForward,   ///< ask the manager; for kSignedQuery the space holds the unsigned response
  kTransfer,  ///< start the transfer that take_transfer() returns
};
struct Outcome {
  Action action = Action::kDrop;
  std::size_t size = 0;  ///< octets in the space
  ipc::ForwardKind forward = ipc::ForwardKind::kUpdate;
};

/// An allowed zone transfer.
struct TransferPlan {
  dns::Header header;  ///< of the request
  dns::Question question;
  dns::Name apex;
  bool edns = false;
  std::uint16_t udp_payload = 0;        ///< this server's size, for the OPT record
  std::optional<std::uint32_t> expire;  ///< RFC 7314: seconds, when the client asked
  std::optional<dns::Serial> since;     ///< IXFR: the client's version
  /// Signs the messages here; empty when unsigned or when the manager signs.
  std::optional<dns::TsigSession> session;
  std::shared_ptr<const KeySet> keys;  ///< keeps the session's key
  Bytes held_request;                  ///< not empty: signed with a key that only the manager has
};

/// Everything between a request's octets and a response's, without sockets, clocks or logs. One per
/// worker. begin() is called once a batch, while a version is pinned, then handle() for each
/// request.
class Responder {
 public:
  /// Gives a zone's entry of the unversioned side table, or null.
  using SideTable = std::function<const shm::Store::SideEntry*(std::uint32_t)>;

  Responder(CounterArray& counters, SideTable side);

  void set_keys(std::shared_ptr<const KeySet> keys);
  /// `now`: seconds since 1970, one coarse time for the batch. `manager`: whether the manager is
  /// connected.
  void begin(const zone::StoreView& snapshot, std::uint64_t now, bool manager);
  [[nodiscard]] const zone::ServerSettings& settings() const noexcept { return *settings_; }

  /// Answers one request. `space`: at least kUdpSpace octets, for TCP 65,535.
  Outcome handle(ByteView message, const Client& client, std::span<std::uint8_t> space);
  /// The plan after an Outcome of kTransfer.
  [[nodiscard]] TransferPlan take_transfer() { return std::move(plan_); }

 private:
  Outcome handle_query(const Client& client);
  Outcome answer_chaos();
  Outcome answer_zone(const Client& client, const zone::ZoneView& zone,
                      const DecodedZoneSettings* rules);
  [[nodiscard]] bool names_below_cut_help(const zone::RecordView& cut,
                                          dns::NameView cut_name) const;
  bool put_referral(const zone::ZoneView& zone, const ResolveOptions& options,
                    dns::MessageWriter& writer);
  std::optional<Outcome> limit_rate(const Client& client, const zone::ZoneView& zone);
  Outcome start_transfer(const Client& client);
  Outcome refuse_transfer(dns::Rcode rcode, Ede detail);
  Outcome answer_difference(const zone::ZoneView& zone);
  Outcome answer_soa(const zone::ZoneView& zone);
  void plan_transfer(const zone::ZoneView& zone);
  Outcome handle_update(const Client& client);
  Outcome handle_notify(const Client& client);
  Outcome forward_or_fail(ipc::ForwardKind kind);
  Outcome not_ready();
  [[nodiscard]] bool passes_on(const zone::ZoneSettings& rules, const Client& client) const;
  [[nodiscard]] bool forwardable(const zone::Acl& rules, const Client& client) const;

  /// Verifies a TSIG before any other part of the request counts; a value ends the request.
  std::optional<Outcome> check_signature(bool verify_here);
  [[nodiscard]] const dns::Name* key_name() const noexcept;

  Outcome error(dns::Rcode rcode);
  Outcome error(dns::Rcode rcode, Ede detail);
  Outcome finished(dns::MessageWriter& writer, const dns::OptBuilder& opt, dns::Rcode rcode);
  dns::MessageWriter new_response(bool authoritative);
  [[nodiscard]] dns::OptBuilder make_opt(dns::Rcode rcode) const;
  [[nodiscard]] std::size_t limit() const noexcept;
  [[nodiscard]] std::size_t signature_room() const noexcept;
  [[nodiscard]] bool expired(const zone::ZoneView& zone) const;
  [[nodiscard]] std::optional<std::uint32_t> expire_of(const zone::ZoneView& zone,
                                                       const DecodedZoneSettings& rules) const;
  [[nodiscard]] bool asks(std::uint16_t option) const noexcept;
  [[nodiscard]] bool may_send_error() noexcept;
  void count_request(const Client& client);
  [[nodiscard]] bool take_cookie(const Client& client);

  Counting counting_;
  SideTable side_;
  SettingsCache cache_;
  ErrorLimit error_limit_;
  RateLimiter rate_limiter_;
  ReferralCache referrals_;
  dns::Nsec3Hasher hasher_;
  std::shared_ptr<const KeySet> keys_;
  std::optional<dns::ServerCookies> cookies_;
  zone::StoreView snapshot_;
  const zone::ServerSettings* settings_ = nullptr;
  std::uint64_t now_ = 0;
  bool manager_ = false;

  // Of the request being handled:
  Request request_;
  bool udp_ = false;
  std::span<std::uint8_t> space_;
  std::optional<dns::TsigSession> session_;  // a verified session, or one that signs an error
  bool held_ = false;                        // signed with a key that only the manager has
  std::optional<std::uint32_t> expire_;
  zone::ZoneView version_of_;  // zone for the ZONEVERSION option; none: option not sent
  std::optional<dns::CookieReply> cookie_;
  Answer answer_;
  TransferPlan plan_;
};

/// Makes a SERVFAIL for a request that cannot be served now; 0 when the request cannot be answered
/// at all.
std::size_t make_servfail(ByteView request, std::span<std::uint8_t> space);

/// The answer to a request whose forwarding failed: SERVFAIL. A NOTIFY over UDP gets no answer (0),
/// since a primary repeats it only while there is no answer (RFC 1996 §3.6).
std::size_t make_failure(const ipc::Forward& request, std::span<std::uint8_t> space);

}  // namespace pando::worker
