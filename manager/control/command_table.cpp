#include "manager/control/command_table.h"

#include <utility>

namespace pando::manager {

using nlohmann::json;

void CommandTable::add(std::string_view verb, Handler handler) {
  handlers_.insert_or_assign(std::string(verb), std::move(handler));
}

void CommandTable::add_for_zone(std::string_view verb, ZoneHandler handler) {
  add(verb, [handler = std::move(handler)](const Request& request, const Reply& reply) {
    auto zone = dns::Name::from_text(request.name);
    if (!zone) return reply(pass(zone));
    handler(*zone, request, reply);
  });
}

void CommandTable::add_query(std::string_view verb, Query query) {
  add(verb, [query = std::move(query)](const Request& request, const Reply& reply) {
    reply(query(request));
  });
}

void CommandTable::run(const Request& request, const Reply& reply) const {
  const auto found = handlers_.find(request.verb);
  if (found == handlers_.end())
    return reply(fail(Errc::kUnsupported, "unknown verb {}", request.verb));
  found->second(request, reply);
}

Result<std::vector<dns::Name>> names_from_text(const std::vector<std::string>& texts) {
  std::vector<dns::Name> names;
  names.reserve(texts.size());
  for (const std::string& text : texts) {
    auto name = dns::Name::from_text(text);
    if (!name) return pass(name);
    names.push_back(*name);
  }
  return names;
}

Result<json> empty_result(const Status& status) {
  if (!status) return pass(status);
  return json::object();
}

}  // namespace pando::manager
