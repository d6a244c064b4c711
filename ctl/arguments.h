#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ctl/commands/check_commands.h"
#include "ctl/commands/explain_command.h"
#include "ctl/import/server_import.h"
#include "ctl/signing/key_commands.h"
#include "ctl/signing/sign_command.h"

namespace pando::ctl {

/// The words and options of a command line. Each verb uses some of them.
struct Arguments {
  std::string config = "/etc/pando/pando.yaml";
  std::string run_directory;
  bool json = false;
  unsigned timeout_seconds = 60;
  std::string zone;
  std::string file;
  std::string content;
  std::uint32_t count = 1;
  std::uint32_t interval = 1;
  std::uint32_t wait = 0;
  std::uint32_t times = 0;
  std::string label;
  bool remove = false;
  bool all = false;
  SignatureFaults verify = SignatureFaults::kErrors;
  std::string owner;
  std::string type;
  ImportRequest import;
  SignRequest sign;
  KeyRequest key_request;
  std::vector<std::string> files;
  std::string digest = "SHA-256";
  std::vector<std::string> zones;
  std::vector<std::string> words;
  std::vector<std::uint32_t> serials;
  std::optional<std::uint32_t> if_serial;
  std::string template_name;
  std::vector<std::string> primaries;
  std::string key;
  std::string level;
  std::uint32_t limit = 100;
  std::uint64_t position = 0;
  std::optional<std::string> value;
  QueryWords query;
};

}  // namespace pando::ctl
