#include "gallop/app/run_plan.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "gallop/app/identity.h"
#include "gallop/app/print.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/track/data_listing.h"
#include "gallop/track/log.h"

namespace gallop::app {

namespace {

constexpr const char* kRecipe = "recipe.yaml";
constexpr int64_t kMostBytesRead = int64_t{64} << 20;  // Limit for comparing contents.

/// What the log of a run says about its past. One that ended before training has no log.
struct Past {
  bool is_finished = false;  // With the newest checkpoint at the last step.
  bool has_checkpoint = false;
};

Past past_of(const fs::path& folder) {
  const fs::path log = folder / "metrics.log";
  if (!fs::exists(log)) return {};
  const auto records = track::read_log(log).current();
  const bool has_checkpoint = std::any_of(records.begin(), records.end(),
                                          [](const auto& one) { return one.kind == "checkpoint"; });
  return {.is_finished = !records.empty() && records.back().kind == "end" &&
                         records.back().texts.at("how") == "finished",
          .has_checkpoint = has_checkpoint};
}

// Otherwise the run would start again and overwrite its log.
void require_checkpoint(const Past& past, bool is_there, const fs::path& folder) {
  if (is_there || (!past.is_finished && !past.has_checkpoint)) return;
  throw DataError(fmt::format(
      "{} has lost its checkpoints: according to its log it {}. Restore {}, or begin another run: "
      "{}",
      printable(folder.string()), past.is_finished ? "is finished" : "has saved some",
      printable((folder / "checkpoints").string()),
      shell_line({"gallop", "train", (folder / kRecipe).string()})));
}

void plan_sharing(const Registries& registries, const RunOptions& options, RunPlan& plan) {
  if (!options.share) return;
  plan.prefix_sources = find_prefix_sources(registries, options.runs, options.name, plan.resolved);
}

// The recipe of a run, and the requested changes.
struct Asked {
  ResolvedRecipe resolved;
  std::vector<OptionChange> changes;
};

ResolvedRecipe recipe_of(const Registries& registries, const fs::path& folder) {
  return parse_recipe(registries, track::RunFolder::read_recipe(folder),
                      (folder / kRecipe).string(), {});
}

ResolvedRecipe changed_recipe(const Registries& registries, const fs::path& folder,
                              ResolvedRecipe& run, const std::vector<Override>& overrides) {
  const std::string file = (folder / kRecipe).string();
  return parse_recipe(registries,
                      without_replaced(run, track::RunFolder::read_recipe(folder), file, overrides),
                      file, overrides);
}

Asked ask_by_overrides(const Registries& registries, const fs::path& folder,
                       const std::vector<Override>& overrides) {
  ResolvedRecipe run = recipe_of(registries, folder);
  check_names(run, folder.string(), overrides);
  Asked asked{changed_recipe(registries, folder, run, overrides), {}};
  warn_of_old_names(asked.resolved);
  if (asked.resolved.is_auto("data", "batch_size")) {
    throw UsageError(
        "data.batch_size: 'auto' cannot be resolved when resuming; give a number to "
        "change it");
  }
  asked.changes = changed_options(run, asked.resolved, /*is_continued=*/false);
  check_changes(asked.changes, folder.string(), "the command line");
  return asked;
}

Asked ask_by_recipe(const Registries& registries, const fs::path& folder, const std::string& recipe,
                    const std::vector<Override>& overrides) {
  ResolvedRecipe run = recipe_of(registries, folder);
  ResolvedRecipe wanted = load_recipe(registries, recipe, overrides);
  auto changes = changed_options(run, wanted, /*is_continued=*/true);
  check_changes(changes, folder.string(),
                overrides.empty() ? recipe : recipe + " and the command line");
  ResolvedRecipe resolved = changed_recipe(registries, folder, run, overrides_of(changes));
  return {std::move(resolved), std::move(changes)};
}

template <typename Ask>
std::optional<RunPlan> plan_existing(const Registries& registries, const RunOptions& options,
                                     const fs::path& path, const std::vector<Override>& overrides,
                                     const Ask& ask) {
  track::RunFolder folder = track::RunFolder::open(path);
  const Past past = past_of(path);
  Asked asked = ask();
  const train::CheckpointStore checkpoints(path / "checkpoints");
  if (past.is_finished && overrides.empty() && asked.changes.empty()) {
    require_checkpoint(past, !checkpoints.list().empty(), path);
    fmt::print(
        "nothing to resume: {} is finished. To train longer, with a higher train.epochs: {} "
        "train.epochs=...\n",
        printable(path.string()), shell_line({"gallop", "train", "--resume", path.string()}));
    return std::nullopt;
  }
  asked.resolved.make_data_path_absolute();
  RunPlan plan{.resolved = std::move(asked.resolved),
               .folder = std::move(folder),
               .changes = std::move(asked.changes),
               .overrides = overrides,
               .is_finished = past.is_finished};
  if (!is_half_shared(path)) {
    plan.checkpoint = checkpoints.newest_intact(&say_damaged);
    require_checkpoint(past, plan.checkpoint.has_value(), path);
    if (plan.checkpoint) plan.trainer = checkpoints.read_trainer(*plan.checkpoint);
  }
  plan_sharing(registries, options, plan);
  return plan;
}

// Identities include hidden files, which are not part of the data.
track::ContentDifference without_hidden(track::ContentDifference difference) {
  for (auto* names : {&difference.changed, &difference.missing, &difference.added}) {
    std::erase_if(*names, [](const std::string& name) { return track::is_hidden(name); });
  }
  return difference;
}

// Compares with the run's recorded identity of its data, which it records during training.
track::ContentDifference compare_contents(const fs::path& run, const DataPaths& data) {
  track::ContentDifference all;
  const auto question = identity_question(data, run.parent_path(), 0);
  try {
    const auto identities = track::read_identities(run);
    const size_t paths = question.data.size(), count = paths + question.named_data.size();
    if (identities.empty() || identities.back().data.size() < count) {
      print_error(
          "gallop: {} ended before the contents of its data were recorded: only names and sizes of "
          "files are compared\n",
          printable(run.string()));
      return all;
    }
    const track::ContentReader reader(question.cache);
    const track::ReadLimits limits{.bytes = kMostBytesRead};
    for (size_t i = 0; i < count; ++i) {
      const track::DataIdentity& then = identities.back().data[i];
      const auto now = i < paths ? reader.read(question.data[i], limits)
                                 : reader.read(question.named_data[i - paths], limits);
      if (then.checksum.empty() || !now.is_read() || now.checksum() == then.checksum) continue;
      const fs::path file = question.listings / (then.checksum + ".txt");
      const auto one = fs::exists(file)
                           ? without_hidden(track::difference(
                                 track::parse_listing(read_file(file), file.string()), now))
                           : track::ContentDifference{.changed = {then.path}};
      all.changed.insert(all.changed.end(), one.changed.begin(), one.changed.end());
      all.missing.insert(all.missing.end(), one.missing.begin(), one.missing.end());
      all.added.insert(all.added.end(), one.added.begin(), one.added.end());
    }
  } catch (const DataError&) {
    // Damaged records are ignored: names and sizes have been compared.
  }
  return all;
}

std::string changes_of_data(const fs::path& run, const DataPaths& data, bool is_allowed) {
  try {
    const auto before = track::read_data_listing(run);
    const DataPaths listed = before ? track::listed_paths(*before, data) : data;
    auto difference =
        before ? track::difference(*before, track::list_data(listed)) : track::ContentDifference();
    if (difference.is_empty()) difference = compare_contents(run, listed);
    return track::describe(difference);
  } catch (const DataError& error) {
    if (!is_allowed) throw;
    return error.what();
  }
}

}  // namespace

void say_damaged(const std::string& damage) {
  print_error("gallop: {}; resuming from the previous checkpoint\n", damage);
}

std::optional<RunPlan> plan_resume(const Registries& registries, const RunOptions& options,
                                   const std::string& name,
                                   const std::vector<Override>& overrides) {
  const fs::path path = track::RunFolder::find(options.runs, name);
  return plan_existing(registries, options, path, overrides,
                       [&] { return ask_by_overrides(registries, path, overrides); });
}

std::optional<RunPlan> plan_start(const Registries& registries, const RunOptions& options,
                                  const std::string& recipe,
                                  const std::vector<Override>& overrides) {
  if (!options.name.empty()) {
    const fs::path path = fs::path(options.runs) / options.name;
    if (options.resume_if_there && track::RunFolder::is_run(path)) {
      return plan_existing(registries, options, path, overrides,
                           [&] { return ask_by_recipe(registries, path, recipe, overrides); });
    }
    refuse_existing_run(path);
  }
  RunPlan plan{.resolved = load_recipe(registries, recipe, overrides)};
  plan.resolved.make_data_path_absolute();
  plan_sharing(registries, options, plan);
  return plan;
}

std::string check_data(const fs::path& run, const DataPaths& data, bool is_allowed) {
  std::string changes = changes_of_data(run, data, is_allowed);
  if (changes.empty() || is_allowed) return changes;
  throw UsageError(fmt::format(
      "the data are not those that {} began with: {}. Restore them, begin another run, or continue "
      "with the data as they are: --allow-changed-data. Nothing was changed",
      printable(run.string()), changes));
}

}  // namespace gallop::app
