#include "ctl/commands/tls_commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ctl/view/json_text.h"

namespace pando::ctl {

using nlohmann::json;

namespace {

bool has_problem(const ipc::TlsStatusResult& result) {
  return !result.certificate.problem.empty() ||
         std::ranges::any_of(result.remotes, [](const ipc::TlsRemoteRow& row) {
           return !row.problem.empty() || !row.certificate.problem.empty();
         });
}

void add_certificate(Facts& facts, const ipc::TlsCertificateRow& row) {
  facts.add("certificate", row.file);
  facts.add("subject", row.subject);
  facts.add("valid until", row.until == 0 ? "" : time_text(row.until));
  facts.add("pin", row.pin);
}

/// The demands on a client's certificate.
std::string demands_text(const ipc::TlsRemoteRow& row) {
  if (!row.authenticated) return "nothing: encrypted only";
  std::string text = row.hostname;
  for (const std::string& pin : row.pins) text += (text.empty() ? "" : " and ") + pin;
  return text;
}

void print_status(const ipc::TlsStatusResult& result, const Output& output) {
  Facts facts;
  facts.add("served", result.served ? "yes" : "no");
  add_certificate(facts, result.certificate);
  facts.add("next pin", result.next_pin);
  facts.add_problem("problem", result.certificate.problem);
  facts.print(output.out, output.colour);
  for (const ipc::TlsRemoteRow& row : result.remotes) {
    output.out << '\n';
    Facts remote;
    remote.add("remote", row.remote);
    remote.add("proves", demands_text(row));
    add_certificate(remote, row.certificate);
    remote.add_problem("problem", row.problem);
    remote.add_problem("problem", row.certificate.problem);
    remote.print(output.out, output.colour);
  }
}

int show(Session& session, std::string_view verb) {
  ipc::ControlRequest request;
  request.verb = verb;
  const auto result = session.get<ipc::TlsStatusResult>(request);
  if (!result) return session.fail(result.error());
  const Output& output = session.output();
  if (output.json)
    output.out << json_text(json(*result)) << '\n';
  else
    print_status(*result, output);
  return has_problem(*result) ? kFailed : kDone;
}

}  // namespace

int tls_status(Session& session) { return show(session, ipc::verb::kTlsStatus); }

int tls_roll(Session& session) { return show(session, ipc::verb::kTlsRoll); }

}  // namespace pando::ctl
