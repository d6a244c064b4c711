#pragma once

#include "http/api/api_routes.h"
#include "http/observe/collector.h"
#include "http/page/page_routes.h"
#include "http/serve/access.h"
#include "http/serve/http_message.h"

namespace pando::http {

/// Answers requests: `/` is a page for people, `/metrics` has the metrics, `/api/v1/` the zones.
class Routes {
 public:
  Routes(Access access, Collector& collector, ApiRoutes api)
      : access_(std::move(access)), collector_(collector), page_(collector), api_(std::move(api)) {}
  /// Any thread.
  [[nodiscard]] Response answer(const Request& request) const;
  /// Whether the client of a request, whose header alone is known, may send a large body.
  [[nodiscard]] bool may_send_much(const Request& header) const;
  /// Whether the request shows a key, or none is needed.
  [[nodiscard]] bool is_known(const Request& request) const {
    return access_.key_of(request) != nullptr;
  }

 private:
  [[nodiscard]] Response metrics(const Request& request) const;

  Access access_;
  Collector& collector_;
  PageRoutes page_;
  ApiRoutes api_;
};

}  // namespace pando::http
