#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/pdns_json.h"
#include "http/api/zone_writer.h"
#include "http/observe/collector.h"
#include "http/serve/access.h"
#include "http/serve/http_message.h"

namespace pando::http {

inline constexpr std::string_view kApiPrefix = "/api/v1/";

/// A TSIG key of the server, without its secret.
struct TsigKeyName {
  std::string name;  ///< with final dot
  std::string algorithm;
};

/// The PowerDNS Authoritative HTTP API. Errors are {"error": "..."}.
class ApiRoutes {
 public:
  /// Parts of the configuration to which requests may refer: keys, remotes by their addresses, and
  /// the template of new zones.
  struct Known {
    std::vector<TsigKeyName> keys;
    std::vector<config::Remote> remotes;
    std::string zone_template;  ///< http.template
  };
  /// References outlive the object; responses need only `collector`.
  ApiRoutes(Collector& collector, const ZoneWriter& writer, const Known& known)
      : collector_(collector), writer_(writer), known_(known) {}
  /// For paths below kApiPrefix, by a client with this key. Any thread, but requests that change
  /// something one after the other.
  [[nodiscard]] Response answer(const Request& request, const AccessKey& client) const;

 private:
  /// A request for one zone: `rest` is the path after its id.
  struct ZoneRequest {
    const Request& request;
    dns::Name zone;
    std::string_view rest;
    const AccessKey& client;
  };

  /// A request for what the server has: `path` is the part after its id.
  [[nodiscard]] Response server(std::string_view path, const Request& request,
                                const AccessKey& client) const;
  [[nodiscard]] Response zones(const Request& request, const AccessKey& client) const;
  [[nodiscard]] Response zone(std::string_view path, const Request& request,
                              const AccessKey& client) const;
  [[nodiscard]] Response read(const ZoneRequest& wanted) const;
  [[nodiscard]] Response change(const ZoneRequest& wanted) const;
  [[nodiscard]] Response create(const Request& request, const AccessKey& client) const;
  [[nodiscard]] Response remove(const ZoneRequest& wanted) const;
  [[nodiscard]] Response put(const ZoneRequest& wanted) const;
  [[nodiscard]] Result<ZoneContent> content_of(const dns::Name& zone) const;
  [[nodiscard]] nlohmann::json zone_object(const ZoneContent& content,
                                           const RRsetFilter& filter) const;
  /// The manager's row of the zone; none without a manager.
  [[nodiscard]] std::optional<ipc::ZoneRow> row_of(std::string_view zone) const;
  [[nodiscard]] Status set_signed(const dns::Name& zone, bool is_signed) const;
  [[nodiscard]] Response cryptokeys(const dns::Name& zone, std::string_view id) const;
  [[nodiscard]] Result<nlohmann::json> keys_of(const dns::Name& zone) const;
  [[nodiscard]] Response change_keys(const ZoneRequest& wanted, std::string_view id) const;
  [[nodiscard]] Response first_key(const dns::Name& zone) const;
  [[nodiscard]] Response patch(const ZoneRequest& wanted) const;
  [[nodiscard]] Response search(const Request& request, const AccessKey& client) const;
  [[nodiscard]] Response statistics(const Request& request) const;
  [[nodiscard]] Response tsig_keys(std::string_view id) const;

  Collector& collector_;
  const ZoneWriter& writer_;
  const Known& known_;
};

}  // namespace pando::http
