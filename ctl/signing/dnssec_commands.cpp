#include "ctl/signing/dnssec_commands.h"

#include <fmt/ranges.h>
#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "base/secret.h"
#include "ctl/backup/file_copy.h"
#include "ctl/signing/key_arguments.h"
#include "ctl/view/json_text.h"
#include "dns/mnemonics.h"
#include "ipc/privileges.h"

namespace pando::ctl {

using nlohmann::json;

namespace {

ipc::ControlRequest request_of(std::string_view verb) {
  ipc::ControlRequest request;
  request.verb = verb;
  return request;
}

std::string key_text(const ipc::SigningKeyRow& key) {
  std::string text = fmt::format("{} {}, {}, {} bits", key.role, key.tag,
                                 dns::mnemonic_of(dns::kDnssecAlgorithms, key.algorithm), key.bits);
  if (!key.part.empty()) text += fmt::format(", {}: {}", key.part, fmt::join(key.uses, ", "));
  return text;
}

/// A file without a name, with the text of a key file of ours: private keys are in no message.
Result<std::shared_ptr<const Fd>> key_descriptor(const NamedKey& key, const dns::Name& zone) {
  const auto text = dns::key_file_text(key.read.key, zone);
  if (!text) return pass(text);
  auto file = std::make_shared<const Fd>(::memfd_create("pando-key", MFD_CLOEXEC));
  if (!*file) return fail_errno("memfd_create");
  if (auto written = write_all(file->get(), bytes_of_text(*text)); !written) return pass(written);
  return file;
}

}  // namespace

int DnssecCommands::list() {
  const Output& output = session_.output();
  Table table({{"ZONE", false, 24}, {"STAGE", false, 12}, {"UNTIL", false, 20}, {"PROBLEM"}});
  json rows = json::array();
  const Status read = session_.for_each_page<ipc::DnssecListResult>(
      request_of(ipc::verb::kDnssecList), [&](const ipc::DnssecListResult& page) -> Status {
        for (const ipc::DnssecRow& row : page.zones) {
          if (output.json)
            rows.push_back(json(row));
          else
            table.add({row.zone, row.stage, row.until == 0 ? "-" : time_text(row.until),
                       row.problem});
        }
        if (!output.json) table.flush(output.out);
        return {};
      });
  if (!read) return session_.fail(read.error());
  if (output.json) output.out << json_text({{"zones", rows}}) << '\n';
  return kDone;
}

int DnssecCommands::status(const std::string& zone) {
  const auto request = request_for_zone(ipc::verb::kDnssecStatus, zone);
  if (!request) return session_.fail(request.error());
  const auto result = session_.get<ipc::DnssecStatusResult>(*request);
  if (!result) return session_.fail(result.error());
  const Output& output = session_.output();
  const int code = result->problem.empty() && result->clock.empty() ? kDone : kFailed;
  if (output.json) {
    output.out << json_text(json(*result)) << '\n';
    return code;
  }
  Facts facts;
  facts.add("zone", result->zone);
  facts.add("policy", result->policy);
  facts.add("stage", result->stage);
  facts.add("until", result->until == 0 ? "" : time_text(result->until));
  facts.add("next", result->next);
  facts.add("roll", result->roll.empty() ? "" : fmt::format("step '{}'", result->roll));
  facts.add("roll until", result->roll_until == 0 ? "" : time_text(result->roll_until));
  facts.add("roll next", result->roll_next);
  facts.add("serial", number(result->serial));
  for (const ipc::SigningKeyRow& key : result->keys) facts.add("key", key_text(key));
  for (const std::string& ds : result->ds) facts.add("ds", ds);
  facts.add("cds", result->cds);
  facts.add("signatures end",
            result->signatures_end == 0 ? "" : time_text(result->signatures_end));
  facts.add("note", result->note);
  facts.add_problem("problem", result->problem);
  facts.add_problem("clock", result->clock);
  facts.print(output.out, output.colour);
  return code;
}

int DnssecCommands::ds(const std::string& zone) {
  const auto request = request_for_zone(ipc::verb::kDnssecStatus, zone);
  if (!request) return session_.fail(request.error());
  const auto result = session_.get<ipc::DnssecStatusResult>(*request);
  if (!result) return session_.fail(result.error());
  const Output& output = session_.output();
  if (result->ds.empty())
    return refuse(output, {Errc::kNotFound, fmt::format("{} is not signed yet", result->zone)});
  if (output.json) {
    output.out << json_text({{"zone", result->zone}, {"ds", result->ds}}) << '\n';
    return kDone;
  }
  for (const std::string& ds : result->ds) output.out << result->zone << " IN DS " << ds << '\n';
  return kDone;
}

int DnssecCommands::check(const std::string& zone, const std::string& policy) {
  auto request = request_for_zone(ipc::verb::kDnssecCheck, zone);
  if (!request) return session_.fail(request.error());
  request->label = policy;
  const Output& output = session_.output();
  const auto result = session_.get<ipc::DnssecCheckResult>(*request);
  if (!result) return session_.fail(result.error());
  const int code = result->problems.empty() ? kDone : kFailed;
  if (output.json) {
    output.out << json_text(json(*result)) << '\n';
    return code;
  }
  Facts facts;
  facts.add("zone", result->zone);
  facts.add("policy", result->policy);
  facts.add("serial", number(result->serial));
  for (const ipc::SigningKeyRow& key : result->keys) facts.add("key", key_text(key));
  facts.add("new key", result->makes_key ? "a CSK is made" : "");
  facts.add("signatures", number(result->signatures));
  facts.add("left out", result->left_out == 0 ? "" : counted(result->left_out, "record"));
  for (const std::string& note : result->notes) facts.add("note", note);
  for (const std::string& problem : result->problems) facts.add_problem("problem", problem);
  facts.print(output.out, output.colour);
  return code;
}

int DnssecCommands::import_keys(const std::string& zone, const KeyArguments& files) {
  const WipeFreed wipe_freed;
  static_cast<void>(ipc::forbid_inspection());  // no core dump has a key
  auto request = request_for_zone(ipc::verb::kDnssecImport, zone);
  if (!request) return session_.fail(request.error());
  const auto keys = read_keys(files);
  if (!keys) return session_.fail(keys.error());
  if (keys->empty()) return session_.fail({Errc::kInvalid, "no key file is given"});
  const auto name = zone_of(*keys, zone);
  if (!name) return session_.fail(name.error());
  const Output& output = session_.output();
  json rows = json::array();
  for (const NamedKey& key : *keys) {
    auto file = key_descriptor(key, *name);
    if (!file) return session_.fail(file.error());
    request->descriptor = std::move(*file);
    const auto row = session_.get<ipc::SigningKeyRow>(*request);
    if (!row)
      return session_.fail({row.error().code, fmt::format("{}: {}", key.path, row.error().text)});
    if (output.json)
      rows.push_back(json(*row));
    else
      output.out << key.path << ": taken, tag " << row->tag << '\n';
  }
  if (output.json) output.out << json_text({{"keys", rows}}) << '\n';
  return kDone;
}

int DnssecCommands::order(std::string_view verb, const std::string& zone,
                          const std::string& label) {
  auto request = request_for_zone(verb, zone);
  if (!request) return session_.fail(request.error());
  request->label = label;
  return session_.order(*request);
}

int DnssecCommands::roll(const std::string& zone, const std::string& keys) {
  return order(ipc::verb::kDnssecRoll, zone, keys);
}

int DnssecCommands::restore_key(const std::string& zone, const std::string& tag) {
  return order(ipc::verb::kDnssecRestoreKey, zone, tag);
}

int DnssecCommands::clock_ok() { return session_.order(request_of(ipc::verb::kDnssecClockOk)); }

}  // namespace pando::ctl
