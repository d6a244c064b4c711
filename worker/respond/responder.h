#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dns/message/cookie.h"
#include "worker/request/key_set.h"
#include "worker/request/outcome.h"
#include "worker/request/request_context.h"
#include "worker/request/settings_cache.h"
#include "worker/respond/forward_handler.h"
#include "worker/respond/query_handler.h"
#include "worker/respond/transfer_handler.h"
#include "worker/respond/zone_expiry.h"
#include "zone/read/read_ahead.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// A request as it came.
struct Arrival {
  ByteView message;
  Client client;
};

/// Rate limit of the reply to a request that was forwarded over UDP.
struct ReplyLimit {
  std::optional<IpAddress> client;  ///< none: the reply is not limited
  dns::Name zone;
  bool is_signed = false;  ///< the request is, with a key that the manager has to check
};

/// Everything between a request's octets and a response's, without sockets, clocks or logs: parses
/// a request and gives it to its handler. One per worker. begin() is called once a batch, while a
/// version is pinned, then handle() for each request, or read() and answer().
class Responder {
 public:
  /// `transfers`: see Counting.
  Responder(CounterArray& counters, SideTable side, std::span<shm::TransferRow> transfers = {});
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  void set_keys(std::shared_ptr<const KeySet> keys);
  /// `now`: seconds since 1970, one coarse time for the batch. `manager`: whether the manager is
  /// connected.
  void begin(const zone::StoreView& view, std::uint64_t now, bool manager);
  [[nodiscard]] const zone::ServerSettings& settings() const noexcept { return *batch_.settings; }

  /// Answers one request. `space`: at least 512 octets, which bound a response; for TCP 65,535.
  Outcome handle(ByteView message, const Client& client, std::span<std::uint8_t> space);

  /// Limit of requests that are read together.
  static constexpr std::size_t kTogether = zone::ReadAhead::kNames;
  /// Reads requests of the batch, at most kTogether, so that their lookups need not wait for memory
  /// one after the other. `arrivals` stay in place until their answers are made.
  void read(std::span<const Arrival> arrivals);
  /// Size of a store, in octets, above which the lookups of read() take turns. What lookups in a
  /// smaller store read is in the processor's caches anyway.
  void read_ahead_above(std::uint64_t octets) noexcept { read_ahead_above_ = octets; }
  /// handle() for request `i` of the last read().
  Outcome answer(std::size_t i, std::span<std::uint8_t> space);

  /// The plan after an Outcome of kTransfer.
  [[nodiscard]] TransferPlan take_transfer() { return transfers_.take_plan(); }

  /// The zone that the request of the last handle() or answer() is about; none for a malformed
  /// request. While the batch's version is pinned.
  [[nodiscard]] zone::ZoneView requested_zone() const;

  /// The request of the last handle() or answer(), while its octets and client are in place.
  [[nodiscard]] const RequestContext& last() const noexcept { return read_[last_].context; }

  /// Makes a SERVFAIL for the request that handle() or answer() had last; that request's octets and
  /// client must still be in place. Returns the response's size.
  std::size_t make_servfail(std::span<std::uint8_t> space);
  /// After an Outcome of kForward: makes the response for the case that the manager does not
  /// answer, a SERVFAIL. None (0) if the client rather repeats its request (is_better_unanswered).
  std::size_t make_failure(std::span<std::uint8_t> space);
  /// After an Outcome of kForward: the rate limit of the manager's reply.
  [[nodiscard]] ReplyLimit reply_limit() const;
  /// Counts a reply of the manager, or make_failure()'s, and truncates it if the rate limit lets it
  /// slip. False: the reply must not be sent.
  [[nodiscard]] bool sends_reply(const ReplyLimit& limit, Bytes& reply);

 private:
  /// A request that was read.
  struct Read {
    RequestContext context;
    ParseOutcome parsed;
    std::optional<SharedLookups::Sought> lookup;  ///< where its result may be cached
    Foreseen foreseen;
  };

  [[nodiscard]] RequestContext& context() noexcept { return read_[last_].context; }
  void parse(ByteView message, const Client& client, std::size_t place);
  void read_ahead();
  void recall(std::span<const std::uint8_t> places) noexcept;
  Outcome answer_parsed(std::size_t place, std::span<std::uint8_t> space);
  Outcome handle_query();
  void count_request();
  [[nodiscard]] bool take_cookie();

  SettingsCache cache_;
  ResponseLimits limits_;
  ZoneExpiry expiry_;
  std::optional<dns::ServerCookies> cookies_;
  BatchContext batch_;
  std::vector<Read> read_;             ///< kTogether places
  std::size_t last_ = 0;               ///< the place in hand
  std::span<const Arrival> arrivals_;  ///< of the last read()
  bool are_parsed_ = false;            ///< each in a place of its own
  std::uint64_t read_ahead_above_ = std::uint64_t{1} << 20;
  zone::ReadAhead ahead_;
  QueryHandler queries_;
  TransferHandler transfers_;
  ForwardHandler forwards_;
};

}  // namespace pando::worker
