#include "ctl/commands/journal_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ctl/view/json_text.h"
#include "manager/inspect/journal_print.h"

namespace pando::ctl {

using nlohmann::json;

namespace {

/// Records of one request: their text bounds the memory of both sides.
constexpr std::uint32_t kPageRecords = 100;

void print_records(std::ostream& out, char sign, std::uint64_t all,
                   const std::vector<ipc::RecordRow>& rows) {
  for (const ipc::RecordRow& row : rows)
    out << fmt::format("  {} {} {} IN {} {}\n", sign, row.owner, row.ttl, row.type, row.rdata);
  if (all > rows.size()) out << fmt::format("  {} {} more\n", sign, all - rows.size());
}

void print(std::ostream& out, const ipc::JournalRecordRow& row) {
  out << fmt::format("{} {} {} ", row.position, row.zone, row.kind);
  if (row.from != row.to) out << fmt::format("{} -> {}", row.from, row.to);
  else out << row.to;
  if (row.time != 0) out << ' ' << time_text(row.time);
  if (!row.note.empty()) out << " (" << row.note << ')';
  if (!row.by.empty() || !row.client.empty()) out << " by " << author_text(row.by, row.client);
  out << '\n';
  print_records(out, '-', row.removed_count, row.removed);
  print_records(out, '+', row.added_count, row.added);
}

void print(const Output& output, const ipc::JournalPrintResult& result) {
  for (const ipc::JournalRecordRow& row : result.records) print(output.out, row);
  if (result.records.empty()) output.out << "no records\n";
  if (result.snapshot != 0)
    output.out << fmt::format("records up to {} are folded into a snapshot\n", result.snapshot);
  if (result.next != 0) output.out << fmt::format("more: --from {}\n", result.next);
  for (const std::string& line : result.damage) output.err << "error: " << line << '\n';
}

template <class T>
void append_rows(std::vector<T>& all, std::vector<T>&& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()),
             std::make_move_iterator(some.end()));
}

/// Gives the page of up to `limit` records from a position on.
using GetPage =
    std::function<Result<ipc::JournalPrintResult>(std::uint64_t from, std::uint32_t limit)>;

Result<ipc::JournalPrintResult> collect_pages(const GetPage& get, const JournalWords& words) {
  ipc::JournalPrintResult all;
  all.next = words.from;
  bool is_first = true;
  while (all.records.size() < words.limit && (is_first || all.next != 0)) {
    const auto left = static_cast<std::uint32_t>(words.limit - all.records.size());
    auto page = get(all.next, std::min(left, kPageRecords));
    if (!page) return page;
    append_rows(all.records, std::move(page->records));
    append_rows(all.damage, std::move(page->damage));
    all.snapshot = page->snapshot;
    all.last = page->last;
    all.next = page->next;
    is_first = false;
  }
  return all;
}

int show_result(const Output& output, const ipc::JournalPrintResult& result) {
  if (output.json)
    output.out << json_text(json(result)) << '\n';
  else
    print(output, result);
  return result.damage.empty() ? kDone : kFailed;
}

}  // namespace

int print_journal(Session& session, const JournalWords& words) {
  const auto get = [&](std::uint64_t from, std::uint32_t limit) -> Result<ipc::JournalPrintResult> {
    ipc::ControlRequest request{.verb = std::string(ipc::verb::kJournalPrint)};
    request.name = words.zone;
    request.position = from;
    request.limit = limit;
    return session.get<ipc::JournalPrintResult>(request);
  };
  const auto result = collect_pages(get, words);
  if (!result) return session.fail(result.error());
  return show_result(session.output(), *result);
}

int print_journal_files(const std::string& path, const JournalWords& words,
                        const Output& output) {
  const auto get = [&](std::uint64_t from, std::uint32_t limit) -> Result<ipc::JournalPrintResult> {
    manager::JournalPage page;
    page.from = from;
    page.records = limit;
    if (!words.zone.empty()) {
      auto name = dns::Name::from_text(words.zone);
      if (!name) return pass(name);
      page.zone = *name;
    }
    return manager::print_journal_at(path, page);
  };
  const auto result = collect_pages(get, words);
  return result ? show_result(output, *result) : refuse(output, result.error());
}

}  // namespace pando::ctl
