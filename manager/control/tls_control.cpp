#include "manager/control/tls_control.h"

#include <nlohmann/json.hpp>

#include "ipc/control_json.h"
#include "manager/tls/tls_certificates.h"

namespace pando::manager {

using nlohmann::json;

void TlsControl::add_to(CommandTable& table) {
  TlsCertificates& certificates = parts_.certificates;
  table.add_query(ipc::verb::kTlsStatus,
                  [&certificates](const CommandTable::Request&) -> Result<json> {
                    return json(certificates.status());
                  });
  table.add(ipc::verb::kTlsRoll, [&certificates](const CommandTable::Request&,
                                                 const CommandTable::Reply& reply) {
    certificates.roll([&certificates, reply](const Status& rolled) {
      if (!rolled) return reply(pass(rolled));
      reply(json(certificates.status()));
    });
  });
}

}  // namespace pando::manager
