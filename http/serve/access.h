#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/serve/http_message.h"

namespace pando::http {

enum class Role { kRead, kAdmin };

struct AccessKey {
  std::string name;
  std::string secret;
  Role role = Role::kRead;
};

/// Decides what a request's client may do. Without keys, everybody may read and nobody may change.
class Access {
 public:
  explicit Access(std::vector<AccessKey> keys) : keys_(std::move(keys)) {}

  /// The role of the client; none: the request shows no key, or an unknown one. The time taken says
  /// nothing about secrets but the lengths and the number of the keys.
  [[nodiscard]] std::optional<Role> role_of(const Request& request) const;
  /// A refusal when the client may not do what needs `wanted`: 401 (RFC 9110 §15.5.2), 403.
  [[nodiscard]] std::optional<Response> refuse(const Request& request, Role wanted) const;

 private:
  std::vector<AccessKey> keys_;
};

/// Compares in a time that depends on the lengths alone.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace pando::http
