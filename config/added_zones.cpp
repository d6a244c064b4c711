#include "config/added_zones.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <unordered_set>
#include <utility>

#include "config/files.h"
#include "config/settings/values.h"
#include "config/zones.h"
#include "dns/folded_key.h"

namespace pando::config {

namespace {

constexpr std::string_view kNone = "-";

class AddedReader {
 public:
  explicit AddedReader(Context& context) : context_(context) {}

  /// kExists: the settings have the zone already.
  Status read_line(std::string_view line) {
    const std::string_view name_text = take_word(line);
    const std::string_view file = take_word(line);
    const std::string_view template_name = take_word(line);
    if (template_name.empty())
      return fail(Errc::kInvalid, "a line is NAME FILE TEMPLATE SETTINGS");
    auto name = parse_name(name_text);
    if (!name) return pass(name);
    auto base = template_options(template_name);
    if (!base) return pass(base);
    auto options = own_options(*base, line);
    if (!options) return pass(options);
    return add_zone(context_, *name, file == kNone ? "" : file, *options, true);
  }

 private:
  Result<std::uint32_t> template_options(std::string_view name) const {
    if (name == kNone) return context_.default_options;
    const auto found = context_.templates.find(name);
    if (found == context_.templates.end())
      return fail(Errc::kInvalid, "no template is named '{}'", name);
    return found->second;
  }

  /// Equal settings are read once, so that ten thousand zones of one customer share them.
  Result<std::uint32_t> own_options(std::uint32_t base, std::string_view text) {
    if (text.empty() || text == "{}") return base;
    const auto key = std::make_pair(base, std::string(text));
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    // Lines of the text are none of the list, so its problems are not the context's.
    Problems others = std::exchange(context_.problems, Problems(""));
    auto options = read_options(base, key.second);
    LoadResult result;
    context_.problems.report(result);
    context_.problems = std::move(others);
    if (options && !result.ok()) return fail(Errc::kInvalid, "{}", reason_of(result.errors[0]));
    if (options) known_.emplace(key, *options);
    return options;
  }

  Result<std::uint32_t> read_options(std::uint32_t base, const std::string& text) const {
    const auto document = YamlDocument::parse(text, YamlDocument::Behind::kIgnore);
    if (!document) return fail(Errc::kInvalid, "{}", document.error().text);
    // Clients that may add zones by command may neither run programs nor switch a check off.
    if (document->root().find("verify-command"))
      return fail(Errc::kDenied,
                  "verify-command: only the configuration names programs: a template there, for "
                  "this zone");
    return read_zone_options(Value(context_, document->root(), "", 0), base);
  }

  /// A problem without the file and the line in front.
  static std::string_view reason_of(std::string_view problem) {
    const auto colon = problem.find(": ");
    return colon == std::string_view::npos ? problem : problem.substr(colon + 2);
  }

  Context& context_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known_;
};

/// Options that zones may leave behind before the unused ones are dropped.
constexpr std::size_t kSpareOptions = 1024;

dns::Name name_in(std::string_view line) { return parse_name(take_word(line)).value(); }

/// The first `count` lines were added.
void take_back(ZoneTable& zones, const std::vector<std::string>& lines, std::size_t count) {
  if (count == 0) return;
  std::unordered_set<std::string> added;
  for (std::size_t i = 0; i < count; ++i) added.insert(dns::folded_key(name_in(lines[i])));
  zones = zones.filtered(
      [&](const ZoneRef& zone) { return !added.contains(dns::folded_key(zone.name)); });
}

/// Some errors name their zone already.
tl::unexpected<Error> about_zone(std::string_view line, const Error& error) {
  if (error.text.starts_with("zone ")) return tl::unexpected<Error>(error);
  return fail(error.code, "zone {}: {}", take_word(line), error.text);
}

/// The key of a zone's settings with which an error begins ("primaries[0]: ..."); empty: none.
std::string_view key_in(std::string_view error) {
  const std::string_view key =
      error.substr(0, error.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
  const std::string_view rest = error.substr(key.size());
  return rest.starts_with(": ") || rest.starts_with("[") ? key : std::string_view();
}

/// The reason with the zone's name, and with the way out: mostly the configuration has lost the
/// template, the remote or the catalog that the zone names.
std::string with_remedy(std::string_view line, const Error& error) {
  const std::string reason = about_zone(line, error).value().text;
  const bool about_template = error.text.starts_with("no template ");
  const std::string_view key = about_template ? "template" : key_in(error.text);
  if (key.empty() || reason.find("unknown key") != std::string::npos) return reason;
  return fmt::format("{}; put back what it names, or take it from the zone before that: "
                     "pandoctl zone configure {} {}", reason, take_word(line), key);
}

bool is_missing(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool is_hidden(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && errno == EACCES;
}

}  // namespace

void read_added_list(Context& context, const std::string& file, std::string_view text) {
  const auto list = parse_added_list(text);
  context.added_list_failed = !list;
  if (!list) return context.problems.error(file, 0, "", list.error().text);
  if (list->unfinished != 0)
    context.problems.warning(file, list->unfinished, "added zones",
                             "this last change was not finished, and is not used");
  AddedReader reader(context);
  for (const AddedLine& zone : list->zones) {
    if (context.problems.full()) return;
    const auto added = reader.read_line(zone.text);
    if (added) continue;
    if (added.error().code == Errc::kExists)
      context.problems.warning(file, zone.number, "added zone",
                               added.error().text + "; the configuration's zone is served");
    else
      context.problems.error(file, zone.number, "", with_remedy(zone.text, added.error()));
  }
}

void read_added_file(Context& context, const std::string& file) {
  context.settings.has_added_list = true;
  const auto refuse = [&](const Error& error) {
    context.added_list_failed = true;
    context.problems.error(context.file, 0, "", error.text);
  };
  if (is_missing(file)) return refuse(missing_added_list(file));
  const auto text = read_regular_file(file);
  if (!text) return refuse(text.error());
  read_added_list(context, file, *text);
}

void find_added_list(Context& context) {
  if (!context.options.read_zone_lists) return;
  const std::string& journal = context.settings.store.journal;
  const std::string path = added_list_path(journal);
  if (is_missing(path) && is_missing(added_mark_path(journal))) return;
  // A user who checks a configuration may lack rights to the journal, so that is a warning. The
  // manager notices a missing list: a start reads it later, a reload compares with the
  // configuration in force.
  if (is_hidden(path) && !context.options.lists_later)
    return context.problems.warning(context.file, 0, "added zones",
                                    fmt::format("no rights to look for {}", path));
  const auto fd = open_regular_file(path);
  const auto fingerprint = fd ? fold_file(context.fingerprint, *fd, path)
                              : Result<std::uint64_t>(fold_text(context.fingerprint, path));
  if (fingerprint) context.fingerprint = *fingerprint;
  if (!context.options.lists_later) return read_added_file(context, path);
  UnreadList list{path, "", {}, {}};
  list.added = true;
  context.unread.push_back(std::move(list));
}

void drop_unused_options(Settings& settings) {
  if (settings.zones.options().size() <=
      2 * settings.zones.size() + settings.templates.size() + kSpareOptions)
    return;
  std::vector<std::uint32_t> kept{settings.default_options};
  for (const auto& [name, options] : settings.templates) kept.push_back(options);
  const std::vector<std::uint32_t> numbers = settings.zones.drop_unused_options(kept);
  settings.default_options = numbers[settings.default_options];
  for (auto& [name, options] : settings.templates) options = numbers[options];
}

Status add_zones(Settings& settings, const std::vector<std::string>& lines) {
  Context context{"", "", {}, std::move(settings), Problems(""), {}, 0, {}};
  context.templates = context.settings.templates;
  context.default_options = context.settings.default_options;
  AddedReader reader(context);
  Status status;
  for (std::size_t i = 0; status && i < lines.size(); ++i) {
    status = reader.read_line(lines[i]);
    if (status) continue;
    status = about_zone(lines[i], status.error());
    take_back(context.settings.zones, lines, i);
  }
  settings = std::move(context.settings);
  return status;
}

}  // namespace pando::config
