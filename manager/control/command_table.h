#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ipc/control.h"
#include "manager/control/control_server.h"

namespace pando::manager {

/// The handlers of control commands by verb.
class CommandTable {
 public:
  using Reply = ControlServer::Reply;
  /// Calls `reply` once, now or later.
  using Handler = std::function<void(const ipc::ControlRequest&, const Reply& reply)>;
  /// Has its result at once.
  using Query = std::function<Result<nlohmann::json>(const ipc::ControlRequest&)>;

  void add(std::string_view verb, Handler handler);
  void add_query(std::string_view verb, Query query);
  /// kUnsupported for a verb without handler.
  void run(const ipc::ControlRequest& request, const Reply& reply) const;

 private:
  std::map<std::string, Handler, std::less<>> handlers_;
};

/// A reply without members, or the error of `status`.
[[nodiscard]] Result<nlohmann::json> empty_result(const Status& status);

}  // namespace pando::manager
