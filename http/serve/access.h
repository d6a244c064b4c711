#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings/settings.h"
#include "http/serve/http_message.h"

namespace pando::http {

using AccessKey = config::HttpKey;
using Role = AccessKey::Role;

/// A client whose secret is known by its digest alone (ipc/secret_digest.h).
struct KnownKey {
  std::string digest;
  AccessKey key;  ///< without its secret
};
/// Digests take the places of the secrets, which the caller wipes.
[[nodiscard]] std::vector<KnownKey> known_keys(const std::vector<AccessKey>& keys);

/// Decides what a request's client may do. Without keys, every client may read, and none may
/// change.
class Access {
 public:
  /// `hosts`: names of this server, in lower case, beside its addresses and localhost.
  explicit Access(std::vector<KnownKey> keys, std::vector<std::string> hosts = {})
      : keys_(std::move(keys)), hosts_(std::move(hosts)), is_open_(keys_.empty()) {}

  /// Each client needs a key, even if no key is configured.
  void close() noexcept { is_open_ = false; }

  /// Whether the request means this server by its Host field. Without keys every client that can
  /// connect reads. So could a web page in a local browser whose name leads to this server
  /// (DNS rebinding): the browser then sends the page's name. With keys any host is good.
  [[nodiscard]] bool is_addressed_by(const Request& request) const;
  /// The response to a request for another host: 421 (RFC 9110 §15.5.20).
  [[nodiscard]] static Response misdirected();

  /// The key of the client, which gives its rights; null: the request shows none, or an unknown
  /// one. The time taken says nothing about secrets but the number of the keys.
  [[nodiscard]] const AccessKey* key_of(const Request& request) const;
  /// The response to a client without a key: 401 (RFC 9110 §15.5.2).
  [[nodiscard]] static Response refusal(const Request& request);

 private:
  std::vector<KnownKey> keys_;
  std::vector<std::string> hosts_;
  bool is_open_;           ///< to clients without a key
  AccessKey everybody_{};  ///< of a server without keys
};

/// Compares in a time that depends on the lengths alone.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace pando::http
