#pragma once

#include <string_view>

#include "http/observe/collector.h"
#include "http/serve/http_message.h"

namespace pando::http {

inline constexpr std::string_view kApiPrefix = "/api/v1/";

/// The reading part of the PowerDNS Authoritative HTTP API. Errors are {"error": "..."}.
class ApiRoutes {
 public:
  explicit ApiRoutes(Collector& collector) : collector_(collector) {}
  /// For paths below kApiPrefix, by a client that may read. Any thread.
  [[nodiscard]] Response answer(const Request& request) const;

 private:
  [[nodiscard]] Response zones(const Request& request) const;
  [[nodiscard]] Response zone(std::string_view id, const Request& request) const;

  Collector& collector_;
};

}  // namespace pando::http
