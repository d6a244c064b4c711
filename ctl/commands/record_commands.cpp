#include "ctl/commands/record_commands.h"

#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "ctl/view/json_text.h"
#include "dns/name.h"
#include "dns/ttl_text.h"

namespace pando::ctl {

using ipc::ControlRequest;
using nlohmann::json;

namespace {

std::string line_of(const ipc::RecordRow& row) {
  return fmt::format("{} {} IN {} {}", row.owner, row.ttl, row.type, row.rdata);
}

}  // namespace

/// JSON output that grows page by page: one object with the last page's members and all rows.
class RecordCommands::Rows {
 public:
  explicit Rows(const char* name) : name_(name) {}
  template <class Row>
  void add(const std::vector<Row>& rows) {
    for (const Row& row : rows) all_.push_back(json(row));
  }
  void put_into(json& page) { page[name_] = std::move(all_); }

 private:
  const char* name_;
  json all_ = json::array();
};

std::string rdata_of_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    const bool quotes = word.find('"') == word.npos &&
                        (word.empty() || word.find_first_of(" \t;()") != word.npos);
    text += quotes ? '"' + word + '"' : word;
  }
  return text;
}

/// The end of a list: as JSON, the last page with the rows of all.
int RecordCommands::finish(const Status& done, json last, std::initializer_list<Rows*> lists) {
  if (!done) return session_.fail(done.error());
  const Output& output = session_.output();
  if (!output.json) return kDone;
  for (Rows* rows : lists) rows->put_into(last);
  output.out << json_text(last) << '\n';
  return kDone;
}

/// Each page is read from the version of its moment: records of two versions are no zone.
int RecordCommands::read(const std::string& zone, const std::string& owner,
                         const std::string& type) {
  auto request = request_for_zone(ipc::verb::kZoneRead, zone);
  if (!request) return session_.fail(request.error());
  request->owner = owner;
  request->type = type;
  const Output& output = session_.output();
  std::optional<std::uint32_t> serial;
  Rows rows("records");
  ipc::ZoneReadResult last;
  const auto done = session_.for_each_page<ipc::ZoneReadResult>(
      *request, [&](const ipc::ZoneReadResult& page) -> Status {
        if (serial && *serial != page.serial)
          return pando::fail(Errc::kExists,
                             "{} changed from serial {} to {} while it was read: read it again, "
                             "or use zone export --to",
                             page.zone, *serial, page.serial);
        serial = page.serial;
        if (output.json)
          rows.add(page.records);
        else
          for (const ipc::RecordRow& row : page.records) output.out << line_of(row) << '\n';
        last.zone = page.zone;
        last.serial = page.serial;
        return {};
      });
  return finish(done, last, {&rows});
}

int RecordCommands::diff(const std::string& zone, const std::vector<std::uint32_t>& serials) {
  auto request = request_for_zone(ipc::verb::kZoneDiff, zone);
  if (!request) return session_.fail(request.error());
  request->serials = serials;
  const Output& output = session_.output();
  Rows removed("removed");
  Rows added("added");
  std::optional<ipc::ZoneDiffResult> last;
  const auto done = session_.for_each_page<ipc::ZoneDiffResult>(
      *request, [&](const ipc::ZoneDiffResult& page) -> Status {
        if (last && (last->from != page.from || last->to != page.to))
          return pando::fail(Errc::kExists, "{} changed while it was compared: ask again",
                             page.zone);
        if (!output.json && !last)
          output.out << fmt::format("; {} serial {} to {}\n", page.zone, page.from, page.to);
        last = {page.zone, page.from, page.to};
        if (output.json) {
          removed.add(page.removed);
          added.add(page.added);
          return {};
        }
        for (const ipc::RecordRow& row : page.removed) output.out << "- " << line_of(row) << '\n';
        for (const ipc::RecordRow& row : page.added) output.out << "+ " << line_of(row) << '\n';
        return {};
      });
  return finish(done, last.value_or(ipc::ZoneDiffResult()), {&removed, &added});
}

int RecordCommands::history(const std::string& zone) {
  const auto request = request_for_zone(ipc::verb::kZoneHistory, zone);
  if (!request) return session_.fail(request.error());
  const Output& output = session_.output();
  Rows rows("changesets");
  Table table({{"FROM", true, 10}, {"TO", true, 10}, {"REMOVED", true, 8}, {"ADDED", true, 8},
               {"BY"}});
  ipc::ZoneHistoryResult last;
  const auto done = session_.for_each_page<ipc::ZoneHistoryResult>(
      *request, [&](const ipc::ZoneHistoryResult& page) -> Status {
        last.zone = page.zone;
        last.serial = page.serial;
        if (output.json) {
          rows.add(page.changesets);
          return {};
        }
        for (const ipc::ChangesetRow& row : page.changesets)
          table.add({number(row.from), number(row.to), number(row.removed), number(row.added),
                     author_text(row.by, row.client)});
        table.flush(output.out);
        return {};
      });
  return finish(done, last, {&rows});
}

Result<ControlRequest> RecordCommands::request_for(std::string_view verb,
                                                   const std::vector<std::string>& zones,
                                                   std::optional<std::uint32_t> if_serial) {
  ControlRequest request{.verb = std::string(verb)};
  for (const std::string& zone : zones) {
    auto name = dns::Name::from_text(zone);
    if (!name) return pass(name);
    request.names.push_back(dns::to_text(*name));
  }
  if (if_serial) request.if_serial = *if_serial;
  return request;
}

int RecordCommands::begin(const std::vector<std::string>& zones,
                          std::optional<std::uint32_t> if_serial) {
  const auto request = request_for(ipc::verb::kZoneBegin, zones, if_serial);
  return request ? session_.order(*request) : session_.fail(request.error());
}

int RecordCommands::commit(const std::vector<std::string>& zones,
                           std::optional<std::uint32_t> if_serial) {
  const auto request = request_for(ipc::verb::kZoneCommit, zones, if_serial);
  if (!request) return session_.fail(request.error());
  return session_.ask<ipc::ZoneCommitResult>(*request, [&](const ipc::ZoneCommitResult& done) {
    for (const ipc::CommittedZone& zone : done.committed)
      session_.output().out << (zone.from == zone.to
                                    ? fmt::format("{}: nothing to change\n", zone.zone)
                                    : fmt::format("{}: serial {} to {}, {} removed, {} added\n",
                                                  zone.zone, zone.from, zone.to,
                                                  counted(zone.removed, "record"), zone.added));
  });
}

int RecordCommands::abort(const std::vector<std::string>& zones) {
  const auto request = request_for(ipc::verb::kZoneAbort, zones, std::nullopt);
  return request ? session_.order(*request) : session_.fail(request.error());
}

int RecordCommands::edit(std::string_view verb, const std::string& zone, const std::string& owner,
                         std::optional<std::uint32_t> ttl, const std::vector<std::string>& words) {
  auto request = request_for_zone(verb, zone);
  if (!request) return session_.fail(request.error());
  request->owner = owner;
  if (ttl) request->ttl = *ttl;
  if (!words.empty()) {
    request->type = words.front();
    request->rdata = rdata_of_words({words.begin() + 1, words.end()});
  }
  return session_.order(*request);
}

/// No type begins with a digit, so the first word tells whether there is a TTL.
int RecordCommands::set(const std::string& zone, const std::string& owner,
                        const std::vector<std::string>& words) {
  std::optional<std::uint32_t> ttl;
  std::vector<std::string> rest = words;
  if (!rest.empty() && !rest[0].empty() && std::isdigit(static_cast<unsigned char>(rest[0][0]))) {
    auto read = dns::ttl_from_text(rest[0]);
    if (!read) return session_.fail(read.error());
    ttl = *read;
    rest.erase(rest.begin());
  }
  // A line of a zone file may have the class, which is always IN here.
  const auto is_class = [](const std::string& word) {
    return word.size() == 2 && (word[0] | 0x20) == 'i' && (word[1] | 0x20) == 'n';
  };
  if (rest.size() > 1 && is_class(rest[0])) rest.erase(rest.begin());
  return edit(ipc::verb::kZoneSet, zone, owner, ttl, rest);
}

int RecordCommands::unset(const std::string& zone, const std::string& owner,
                          const std::vector<std::string>& words) {
  return edit(ipc::verb::kZoneUnset, zone, owner, std::nullopt, words);
}

}  // namespace pando::ctl
