#include "manager/control/command_table.h"

#include <algorithm>
#include <utility>

#include "ipc/control_verbs.h"

namespace pando::manager {

using nlohmann::json;

namespace {

/// Arguments that some verb demands. An empty one is as good as none; numbers have defaults.
constexpr std::pair<std::string_view, std::string ipc::ControlRequest::*> kTexts[] = {
    {"name", &ipc::ControlRequest::name}, {"label", &ipc::ControlRequest::label},
    {"to", &ipc::ControlRequest::to},     {"owner", &ipc::ControlRequest::owner},
    {"type", &ipc::ControlRequest::type}, {"rdata", &ipc::ControlRequest::rdata},
    {"key", &ipc::ControlRequest::key},
};
constexpr std::pair<std::string_view, std::vector<std::string> ipc::ControlRequest::*> kLists[] = {
    {"names", &ipc::ControlRequest::names},
    {"zones", &ipc::ControlRequest::zones},
};

bool lacks(const ipc::ControlRequest& request, std::string_view argument) {
  const auto is_empty = [&](const auto& row) {
    return row.first == argument && (request.*row.second).empty();
  };
  return std::ranges::any_of(kTexts, is_empty) || std::ranges::any_of(kLists, is_empty);
}

/// Words with brackets or parentheses are the name of no argument, and hence pass.
Status check_arguments(const ipc::ControlRequest& request) {
  const ipc::ControlVerb* verb = ipc::find_verb(request.verb);
  if (verb == nullptr) return {};
  for (std::string_view rest = verb->arguments; !rest.empty();) {
    const auto end = std::min(rest.find(' '), rest.size());
    if (const auto argument = rest.substr(0, end); lacks(request, argument))
      return fail(Errc::kInvalid, "{} needs '{}'; its arguments: {}", request.verb, argument,
                  verb->arguments);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace

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
  if (auto complete = check_arguments(request); !complete) return reply(pass(complete));
  found->second(request, reply);
}

std::vector<std::string> CommandTable::verbs() const {
  std::vector<std::string> verbs;
  for (const auto& [verb, handler] : handlers_) verbs.push_back(verb);
  return verbs;
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
