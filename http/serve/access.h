#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/settings/settings.h"
#include "http/serve/http_message.h"

namespace pando::http {

using AccessKey = config::HttpKey;
using Role = AccessKey::Role;

/// Decides what a request's client may do. Without keys, everybody may read and nobody may change.
class Access {
 public:
  explicit Access(std::vector<AccessKey> keys) : keys_(std::move(keys)) {}

  /// The key of the client, which gives its rights; null: the request shows none, or an unknown
  /// one. The time taken says nothing about secrets but the lengths and the number of the keys.
  [[nodiscard]] const AccessKey* key_of(const Request& request) const;
  /// The response to a client without a key: 401 (RFC 9110 §15.5.2).
  [[nodiscard]] static Response refusal(const Request& request);

 private:
  std::vector<AccessKey> keys_;
  AccessKey everybody_{};  ///< of a server without keys
};

/// Compares in a time that depends on the lengths alone.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace pando::http
