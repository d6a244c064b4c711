#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/commands/manager_commands.h"

/// Commands on the records of zones: reading, history, transactions. Each prints its answer and
/// returns an ExitCode.
namespace pando::ctl {

class RecordCommands {
 public:
  /// `session` outlives the object.
  explicit RecordCommands(Session& session) : session_(session) {}

  /// Prints all records of a zone, of an owner, or of an owner's type. Empty: all.
  int read(const std::string& zone, const std::string& owner, const std::string& type);
  /// No serials: the open transaction. One: from that serial to the present one.
  int diff(const std::string& zone, const std::vector<std::uint32_t>& serials);
  int history(const std::string& zone);
  int begin(const std::vector<std::string>& zones, std::optional<std::uint32_t> if_serial);
  /// `words`: [TTL] TYPE RDATA...
  int set(const std::string& zone, const std::string& owner, const std::vector<std::string>& words);
  /// `words`: [TYPE [RDATA...]]
  int unset(const std::string& zone, const std::string& owner,
            const std::vector<std::string>& words);
  int commit(const std::vector<std::string>& zones, std::optional<std::uint32_t> if_serial);
  int abort(const std::vector<std::string>& zones);

 private:
  class Rows;

  int finish(const Status& done, nlohmann::json last, std::initializer_list<Rows*> lists);
  static Result<ipc::ControlRequest> request_for(std::string_view verb,
                                                 const std::vector<std::string>& zones,
                                                 std::optional<std::uint32_t> if_serial);
  int edit(std::string_view verb, const std::string& zone, const std::string& owner,
           std::optional<std::uint32_t> ttl, const std::vector<std::string>& words);

  Session& session_;
};

/// RDATA as one text from the words of a command line. The shell has taken quotes off, so a word
/// with blanks, semicolons or parentheses gets quotes again.
[[nodiscard]] std::string rdata_of_words(const std::vector<std::string>& words);

}  // namespace pando::ctl
