#pragma once

#include <optional>
#include <string_view>

#include "http/observe/collector.h"
#include "http/serve/access.h"
#include "http/serve/http_message.h"

namespace pando::http {

/// The data of the page are below this path.
inline constexpr std::string_view kPagePrefix = "/page/";

/// The page for people. Its files are the same for everybody and have nothing secret, so that they
/// need no key; its data do.
class PageRoutes {
 public:
  explicit PageRoutes(Collector& collector) : collector_(collector) {}

  /// A file of the page; none when the path is none of its files'.
  [[nodiscard]] static std::optional<Response> file(const Request& request);
  /// For paths below kPagePrefix, by a client with this key. Any thread.
  [[nodiscard]] Response answer(const Request& request, const AccessKey& client) const;

 private:
  [[nodiscard]] Response data(const Request& request, const AccessKey& client) const;
  [[nodiscard]] Response overview(const AccessKey& client) const;
  [[nodiscard]] Response zones(const Request& request, const AccessKey& client) const;
  [[nodiscard]] Response zone(const Request& request, const AccessKey& client) const;

  Collector& collector_;
};

}  // namespace pando::http
