#include "config/load.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/secret.h"
#include "config/added_zones.h"
#include "config/files.h"
#include "config/settings/open_text.h"
#include "config/tables.h"
#include "config/zones.h"

namespace pando::config {

namespace {

void read_root(Context& context, const YAML::Node& document) {
  const Value root(context, document, "", 1);
  if (document.IsNull()) return;  // an empty file: defaults, no zones
  Members members(root);
  if (!document.IsMap()) return;
  read_members(root, members, kFirstSections, context.settings);
  // Catalogs name templates, and templates name catalogs; template names must therefore exist
  // first.
  TemplateReader templates(members.take("templates"));
  read_members(root, members, kLaterSections, context.settings);
  templates.read_options();
  add_catalog_zones(context);
  if (const auto zones = members.take("zones")) read_zones(*zones);
  if (const auto lists = members.take("zone-lists")) read_zone_lists(*lists);
  members.finish();
  // The last list: a zone that the configuration has, too, is the configuration's.
  find_added_list(context);
}

/// Receives only the position where a document begins.
class DocumentStart final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
  const YAML::Mark& mark() const { return mark_; }

 private:
  YAML::Mark mark_;
};

/// Reports text behind the end of the first document. YAML::LoadAll must not be used: it does not
/// advance over a token that can begin no document (a lone comma). YAML::LoadAll would then return
/// empty documents until memory is exhausted.
void refuse_second_document(Context& context, const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return;
  context.problems.error(context.file, start.mark().line + 1, "",
                         "text behind the end of the first document: only one is read");
}

/// Only a line with a marker ends a block mapping whose keys stand at the start of their lines. So
/// a configuration of many zones is mostly parsed once.
bool may_end_early(const YAML::Node& document, const std::string& text) {
  const bool whole_lines = document.IsMap() && document.Style() == YAML::EmitterStyle::Block &&
                           document.Mark().column == 0;
  if (!whole_lines) return true;
  for (const std::string_view marker : {"---", "...", "%"})
    if (text.starts_with(marker) || text.find(fmt::format("\n{}", marker)) != std::string::npos ||
        text.find(fmt::format("\r{}", marker)) != std::string::npos)
      return true;
  return false;
}

void read_document(Context& context, const std::string& text) {
  const YAML::Node document = YAML::Load(text);
  // The parser takes the end of the text for the end of a quote.
  if (const OpenText open = find_open_text(text); open.line != 0)
    return context.problems.error(context.file, open.line, "", open.message);
  if (may_end_early(document, text)) refuse_second_document(context, text);
  read_root(context, document);
}

LoadResult load_into(Context& context, const std::string& text) {
  try {
    read_document(context, text);
  } catch (const YAML::Exception& error) {
    const OpenText open = find_open_text(text);
    if (open.line != 0)
      context.problems.error(context.file, open.line, "", open.message);
    else
      context.problems.error(context.file, error.mark.line + 1, "", error.msg);
  } catch (const std::exception& error) {
    context.problems.error(context.file, 0, "", error.what());
  }
  LoadResult result;
  context.problems.report(result);
  result.settings = std::move(context.settings);
  result.settings.templates = context.templates;
  result.settings.default_options = context.default_options;
  result.fingerprint = context.fingerprint;
  result.has_secrets = context.has_secrets;
  result.sources = std::move(context.sources);
  result.added_list_failed = context.added_list_failed;
  if (!context.unread.empty())
    result.lists = std::make_shared<UnreadLists>(
        UnreadLists{std::move(context.file), std::move(context.folder), std::move(context.unread),
                    std::move(context.templates), context.default_options});
  return result;
}

Context make_context(const std::string& path, const LoadOptions& options) {
  std::error_code ignored;  // without a current folder, relative paths stay relative
  const std::string folder = std::filesystem::absolute(path, ignored).parent_path().string();
  Context context{path, folder, options, {}, Problems(path), {}, 0, {}};
  context.settings.zones = ZoneTable(folder);
  context.settings.zones.add_options({});  // number 0: options without any template
  return context;
}

}  // namespace

std::string LoadResult::error_text() const {
  std::string text;
  for (const std::string& error : errors) text += (text.empty() ? "" : "\n") + error;
  return text;
}

LoadResult load(const std::string& path, const LoadOptions& options) {
  const WipeFreed wipe_freed;  // the text may have secrets, and the parser copies it many times
  LoadResult result;
  auto fd = open_regular_file(path);
  const auto text = fd ? read_open_file(*fd, path) : Result<std::string>(pass(fd));
  if (!text) {
    result.errors.push_back(text.error().text);
    return result;
  }
  result = load_text(*text, path, options);
  if (result.has_secrets && is_open_to_others(*fd))
    result.warnings.push_back(fmt::format(
        "{}: other users can read or write this file, which has secrets: chmod o= {}", path, path));
  return result;
}

LoadResult load_text(std::string_view text, const std::string& path, const LoadOptions& options) {
  const WipeFreed wipe_freed;
  Context context = make_context(path, options);
  context.fingerprint = fold_text(0, text);
  return load_into(context, std::string(text));
}

void read_lists(LoadResult& result) {
  const std::shared_ptr<UnreadLists> lists = std::exchange(result.lists, nullptr);
  if (!lists) return;
  Context context{lists->file,
                  lists->folder,
                  {},
                  std::move(result.settings),
                  Problems(lists->file),
                  lists->templates,
                  lists->default_options,
                  {}};
  try {
    for (const UnreadList& list : lists->lists) read_unread_list(context, list);
  } catch (const std::exception& error) {
    context.problems.error(context.file, 0, "", error.what());
  }
  LoadResult read;
  context.problems.report(read);
  result.settings = std::move(context.settings);
  result.added_list_failed = context.added_list_failed;
  for (std::string& error : read.errors) result.errors.push_back(std::move(error));
  for (std::string& warning : read.warnings) result.warnings.push_back(std::move(warning));
}

}  // namespace pando::config
