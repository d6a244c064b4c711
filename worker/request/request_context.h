#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "dns/message/cookie.h"
#include "dns/tsig/tsig.h"
#include "worker/request/counting.h"
#include "worker/request/error_limit.h"
#include "worker/request/key_set.h"
#include "worker/request/rate_limit.h"
#include "worker/request/request.h"
#include "zone/read/store_view.h"
#include "zone/settings/compiled_settings.h"
#include "zone/trie/key.h"

namespace pando::worker {

/// State that the requests of one batch share.
struct BatchContext {
  zone::StoreView view;  ///< pinned for the batch
  const zone::ServerSettings* settings = nullptr;
  std::shared_ptr<const KeySet> keys = std::make_shared<KeySet>();
  std::uint64_t now = 0;           ///< seconds since 1970
  bool manager_connected = false;  ///< requests can be forwarded, or wait for a new manager
};

/// Limits of a worker's responses over UDP.
struct ResponseLimits {
  ErrorLimit errors;
  RateLimiter rates;
};

struct Foreseen;

/// One request, and the state that its handling collects for the response. Handlers share this
/// alone, so each handler can be tested with a context made by hand. A worker reuses its
/// contexts: a request costs no allocation and no copy.
struct RequestContext {
  RequestContext(const BatchContext& of_batch, const Counting& counts,
                 ResponseLimits& of_worker) noexcept
      : batch(of_batch), counting(counts), limits(of_worker) {}

  /// Starts with the next request, before it is read. `of_client` stays in place while the request
  /// is handled.
  void begin(const Client& of_client) noexcept {
    client = &of_client;
    key = nullptr;
    foreseen = nullptr;
    cookie.reset();
    refusal = {};
  }
  /// Starts a response that is unsigned and about no zone, so far.
  void begin_response(std::span<std::uint8_t> for_response) noexcept {
    space = for_response;
    session.reset();
    has_managers_key = false;
    is_verified = false;
    is_counted = false;
    expire.reset();
    version_of = {};
  }

  [[nodiscard]] bool is_udp() const noexcept { return client->is_udp(); }
  [[nodiscard]] bool is_tls() const noexcept {
    return client->transport == ipc::Transport::kTls;
  }
  [[nodiscard]] const IpAddress& address() const noexcept { return client->remote.address; }
  /// True when the request has an OPT record with this option.
  [[nodiscard]] bool asks(std::uint16_t option) const noexcept {
    return request.edns && request.edns->has(option);
  }
  /// A valid cookie proves the client's address (RFC 7873 §5.2.5).
  [[nodiscard]] bool has_valid_cookie() const noexcept {
    return cookie && cookie->state == dns::CookieState::kValid;
  }
  /// The name of the request's TSIG key, as claimed; null without TSIG.
  [[nodiscard]] const dns::Name* key_name() const noexcept {
    return request.tsig ? &request.tsig->key_name : nullptr;
  }
  /// The client for the rules of a zone, with the key as claimed.
  [[nodiscard]] zone::Requester requester() const noexcept {
    return {address(), key_name(), client->peer};
  }

  const BatchContext& batch;
  Counting counting;
  ResponseLimits& limits;

  Request request;
  /// Key of the question's name, made while requests were read together; null: not made.
  const zone::NameKey* key = nullptr;
  zone::ZoneView nearest_zone;  ///< with `key`: the result of find_zone()
  /// The lookups that were made while requests were read together (worker/respond/foreseen.h);
  /// null: none.
  const Foreseen* foreseen = nullptr;
  const Client* client = nullptr;
  std::span<std::uint8_t> space;  ///< for the response
  /// Signs the response: the session of a verified request, or one that reports a TSIG error.
  std::optional<dns::TsigSession> session;
  bool has_managers_key = false;  ///< signed with a key that only the manager has
  bool is_verified = false;       ///< the worker has found the request's signature right
  bool is_counted = false;        ///< the response has passed the rate limits
  std::optional<dns::CookieReply> cookie;
  std::optional<std::uint32_t> expire;  ///< for the EXPIRE option
  zone::ZoneView version_of;            ///< zone for the ZONEVERSION option; none: option not sent
  /// The reason for which a transfer, update, NOTIFY or signature was refused; empty: none was.
  std::string_view refusal;
};

}  // namespace pando::worker
