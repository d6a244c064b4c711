#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "dns/name.h"
#include "ipc/control.h"
#include "manager/control/control_server.h"

namespace pando::manager {

/// The handlers of control commands by verb.
class CommandTable {
 public:
  using Request = ipc::ControlRequest;
  using Reply = ControlServer::Reply;
  /// Calls `reply` once, now or later.
  using Handler = std::function<void(const Request&, const Reply& reply)>;
  /// The same for the zone that the request names.
  using ZoneHandler =
      std::function<void(const dns::Name& zone, const Request&, const Reply& reply)>;
  /// Has its result immediately.
  using Query = std::function<Result<nlohmann::json>(const Request&)>;

  void add(std::string_view verb, Handler handler);
  void add_for_zone(std::string_view verb, ZoneHandler handler);
  void add_query(std::string_view verb, Query query);
  /// kUnsupported for a verb without handler. kInvalid, with the verb's usage, for a request
  /// without an argument that ipc::kControlVerbs demands.
  void run(const Request& request, const Reply& reply) const;

  /// The verbs with a handler, in the order of their names.
  [[nodiscard]] std::vector<std::string> verbs() const;

 private:
  std::map<std::string, Handler, std::less<>> handlers_;
};

[[nodiscard]] Result<std::vector<dns::Name>> names_from_text(const std::vector<std::string>& texts);
/// The value in JSON, or the error. Needs ipc/control_json.h.
template <class T>
[[nodiscard]] Result<nlohmann::json> as_json(const Result<T>& result) {
  if (!result) return pass(result);
  return nlohmann::json(*result);
}
/// A reply without members, or the error of `status`.
[[nodiscard]] Result<nlohmann::json> empty_result(const Status& status);

}  // namespace pando::manager
