#pragma once

#include "http/api/api_routes.h"
#include "http/live_settings.h"
#include "http/observe/collector.h"
#include "http/page/page_routes.h"
#include "http/serve/access.h"
#include "http/serve/http_message.h"

namespace pando::http {

/// Answers requests: `/` is a page for people, `/metrics` has the metrics, `/api/v1/` the zones.
class Routes {
 public:
  Routes(LiveSettings& settings, Collector& collector, ZoneWriter writer)
      : settings_(settings), collector_(collector), page_(collector), writer_(std::move(writer)) {}
  /// By the settings in force. Any thread.
  [[nodiscard]] Response answer(const Request& request) const;
  /// Whether the client of a request, whose header alone is known, may send a large body.
  [[nodiscard]] bool may_send_much(const Request& header) const;
  /// Whether the request shows a key, or none is needed. As the function above it does not block,
  /// and goes by the settings of the last response.
  [[nodiscard]] bool is_known(const Request& request) const {
    return settings_.last()->access.key_of(request) != nullptr;
  }

 private:
  [[nodiscard]] Response metrics(const Request& request) const;

  LiveSettings& settings_;
  Collector& collector_;
  PageRoutes page_;
  ZoneWriter writer_;
};

}  // namespace pando::http
