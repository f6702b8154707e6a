#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/runs/subcommands.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/mlflow/import.h"
#include "gallop/track/optuna/import.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/tensorboard/runs.h"

namespace gallop::app {

namespace {

struct Import {
  std::string from, runs = "runs", prefix, experiment, study;
};

// Checks that all runs can be created before creating any.
template <typename Found>
void check_names(const std::vector<Found>& found, const Import& import) {
  for (const Found& one : found) {
    const std::string name = import.prefix + one.name;
    track::RunFolder::check_name(name);
    if (track::RunFolder::is_run(fs::path(import.runs) / name)) {
      throw UsageError(fmt::format("run '{}' already exists; use --prefix", printable(name)));
    }
  }
}

/// Imports runs one by one; a failing one does not stop the others.
class Importer {
 public:
  /// Which runs get a line.
  enum class Lines { kAll, kWithNotes };

  explicit Importer(const Import& import, Lines lines = Lines::kAll)
      : import_(import), lines_(lines) {}

  void add_failure(const std::string& what) { failures_.push_back(what); }

  // `import_one` creates a run from one of `found` under a name.
  template <typename Found, typename ImportOne>
  void run(const std::vector<Found>& found, const ImportOne& import_one) {
    check_names(found, import_);
    for (const Found& one : found) {
      const std::string name = import_.prefix + one.name;
      try {
        print(name, import_one(one, name));
      } catch (const Error& error) {
        add_failure(fmt::format("{}: {}", printable(name), error.what()));
      } catch (const fs::filesystem_error& error) {
        add_failure(fmt::format("{}: {}", printable(name), printable(error.what())));
      }
    }
  }

  // Throws DataError if imports failed.
  void finish() const {
    if (lines_ == Lines::kWithNotes) {
      fmt::print("{} runs: {} points\n", format_count(imported_), format_count(points_));
    }
    if (failures_.empty()) return;
    const auto failed = static_cast<int64_t>(failures_.size());
    std::string text = fmt::format("{} of {} runs {} not imported:", format_count(failed),
                                   format_count(imported_ + failed), failed == 1 ? "was" : "were");
    for (const std::string& failure : failures_) text += "\n  " + failure;
    throw DataError(text);
  }

 private:
  void print(const std::string& name, const track::Imported& imported) {
    ++imported_;
    points_ += imported.points;
    if (lines_ == Lines::kWithNotes && imported.notes.empty()) return;
    fmt::print("{}: {} points", printable(name), format_count(imported.points));
    for (const std::string& note : imported.notes) fmt::print("; {}", note);
    fmt::print("\n");
  }

  const Import& import_;
  Lines lines_;
  std::vector<std::string> failures_;
  int64_t imported_ = 0, points_ = 0;
};

void import_from_tensorboard(const Import& import) {
  Importer importer(import);
  std::vector<std::string> unreadable;
  const auto found = track::tensorboard::find_runs(import.from, unreadable);
  for (const std::string& folder : unreadable) importer.add_failure(folder);
  importer.run(found, [&](const auto& one, const std::string& name) {
    return track::tensorboard::import_run(one, import.runs, name);
  });
  importer.finish();
}

void import_from_mlflow(const Import& import) {
  track::mlflow::Client client(import.from);
  Importer importer(import);
  importer.run(track::mlflow::find_runs(client, import.experiment),
               [&](const auto& one, const std::string& name) {
                 return track::mlflow::import_run(client, one, import.runs, name);
               });
  importer.finish();
}

void import_from_optuna(const Import& import) {
  track::optuna::Storage storage(import.from);
  Importer importer(import, Importer::Lines::kWithNotes);
  importer.run(storage.trials(import.study), [&](const auto& one, const std::string& name) {
    return storage.import_trial(one, import.runs, name);
  });
  importer.finish();
}

}  // namespace

ExitCode runs_import(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Import runs from TensorBoard files in a folder and its subfolders, one run per folder with\n"
      "files; from an MLflow experiment; or from the trials in an SQLite file of\n"
      "Optuna, which get their study as a tag 'sweep'. Scalars and options are imported; images,\n"
      "histograms and artifacts are not. Runs that cannot be read do not stop the others; they\n"
      "are listed at the end with the reason, and the exit code is 3.\n\n"
      "Example: gallop runs import logdir --prefix old-\n"
      "         gallop runs import http://127.0.0.1:5000 --experiment gallop\n"
      "         gallop runs import optuna.db --study widths",
      "gallop runs import");
  Import import;
  parser.add_option("FROM", import.from, "a TensorBoard log folder, a server's address, or a file")
      ->required();
  parser.add_option("--runs", import.runs, "folder of the runs");
  parser.add_option("--prefix", import.prefix, "prefix of the run names");
  auto* experiment =
      parser.add_option("--experiment", import.experiment, "name of the MLflow experiment");
  auto* study = parser.add_option("--study", import.study, "Optuna study; all by default");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const bool is_server = import.from.starts_with("http://") || import.from.starts_with("https://");
  if (is_server != (experiment->count() > 0)) {
    throw UsageError(is_server
                         ? "--experiment NAME is required for an MLflow server"
                         : "--experiment requires a server address such as http://127.0.0.1:5000");
  }
  const bool is_file = !is_server && fs::is_regular_file(import.from);
  if (study->count() > 0 && !is_file) {
    throw UsageError("--study requires an SQLite file of Optuna");
  }
  if (is_server) {
    import_from_mlflow(import);
  } else if (is_file) {
    import_from_optuna(import);
  } else {
    import_from_tensorboard(import);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
