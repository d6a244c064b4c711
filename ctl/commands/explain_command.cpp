#include "ctl/commands/explain_command.h"

#include <fmt/format.h>

#include <ostream>

namespace pando::ctl {

namespace {

void print_section(std::ostream& out, const char* title, const std::vector<ipc::RecordRow>& rows) {
  if (rows.empty()) return;
  out << '\n' << title << '\n';
  for (const ipc::RecordRow& row : rows)
    out << fmt::format("  {} {} IN {} {}\n", row.owner, row.ttl, row.type, row.rdata);
}

void print(std::ostream& out, const ipc::ExplainResult& result) {
  out << result.question << '\n';
  for (std::size_t i = 0; i < result.steps.size(); ++i)
    out << fmt::format("{:3}. {}\n", i + 1, result.steps[i]);
  out << fmt::format("{}{}\n", result.rcode, result.authoritative ? ", authoritative" : "");
  print_section(out, "Answer", result.answer);
  print_section(out, "Authority", result.authority);
  print_section(out, "Additional", result.additional);
}

}  // namespace

int explain(Session& session, const QueryWords& query) {
  ipc::ControlRequest request{std::string(ipc::verb::kExplain)};
  request.name = query.name;
  request.type = query.type;
  request.from = query.from;
  request.key = query.key;
  request.dnssec_ok = query.dnssec_ok;
  return session.ask<ipc::ExplainResult>(
      request, [&](const ipc::ExplainResult& result) { print(session.output().out, result); });
}

}  // namespace pando::ctl
