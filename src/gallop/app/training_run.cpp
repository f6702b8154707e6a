#include "gallop/app/training_run.h"

#include <unistd.h>

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "gallop/app/batch_curve.h"
#include "gallop/app/batch_finder.h"
#include "gallop/app/common_steps.h"
#include "gallop/app/identity.h"
#include "gallop/app/lr_curve.h"
#include "gallop/app/prepared_recipe.h"
#include "gallop/app/recipe.h"
#include "gallop/app/run_log.h"
#include "gallop/app/run_note.h"
#include "gallop/app/run_pusher.h"
#include "gallop/app/run_samples.h"
#include "gallop/app/run_schedule.h"
#include "gallop/app/session.h"
#include "gallop/app/shared_beginning.h"
#include "gallop/app/trained_run.h"
#include "gallop/app/weight_histograms.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/launch/world.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_samples.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

namespace {

constexpr const char* kOrigins = "origins.yaml";

class PreparedRun final : public TrainingRun {
 public:
  PreparedRun(const Families& families, ResolvedRecipe resolved, const RunPlace& place,
              const Team& team)
      : families_(families),
        team_(team),
        until_(place.until),
        mlflow_(place.mlflow),
        share_(place.share),
        prepared_(families, std::move(resolved), place.runs, team.collectives()) {}

  std::string recipe_yaml() { return prepared_.resolved().to_yaml(false); }
  /// Says of each value where it comes from.
  std::string origins_yaml() { return prepared_.resolved().to_yaml(true); }
  const fs::path& path() const { return path_; }
  bool has_measured_buckets() const { return !prepared_.buckets().empty(); }
  const std::string& recipe_name() { return prepared_.resolved().name; }

  track::RunInfo info() const {
    track::RunInfo info{
        .version = GALLOP_VERSION, .hardware = prepared_.hardware(), .started = track::utc_now()};
    info.command_line = read_command_line();
    info.processes = team_.size();
    for (const auto& file : data().parts->files) {
      std::error_code ignored;
      info.data_files.push_back({file, static_cast<int64_t>(fs::file_size(file, ignored))});
    }
    return info;
  }

  // The data must be those that the run began with, where it has come so far as to say.
  void check_against(const fs::path& folder) {
    if (has_inputs(folder)) check_fits(prepared_.inputs(), read_inputs(folder));
    if (prepared_.resolved().is_auto("optimizer", "lr") &&
        !train::CheckpointStore(folder / "checkpoints").list().empty()) {
      throw UsageError("optimizer.lr: 'auto' cannot be resolved when resuming; give a number");
    }
  }

  void take_batch(FoundBatch found) { batch_ = std::move(found); }

  // Begins with another run's newest checkpoint, unless it has begun already.
  void begin_from(const fs::path& folder) {
    if (!checkpoints_->list().empty()) return;
    check_fits(prepared_.inputs(), read_inputs(folder));
    const auto newest = train::CheckpointStore(folder / "checkpoints").newest_intact(&say_damaged);
    if (!newest) {
      throw UsageError(fmt::format("{} has no checkpoint to begin with", folder.string()));
    }
    checkpoints_->adopt(*newest);
    note_foreign_steps(path_, "the first ones are those of " + folder.string());
  }

  // Begins where it and one of these part, unless it has begun already.
  void share_with(const std::vector<Sibling>& siblings) {
    if (!checkpoints_->list().empty()) return;
    const auto length =
        train::Length::of(recipe().train, recipe().data.batch, data().train->size());
    // The last step is done here, so that there is a process whose memory and speed can be told.
    const int64_t last = std::min(length.step_of(until_), length.steps - 1);
    shared_ = share_beginning(families_, prepared_, info(), siblings, path_, *checkpoints_, last);
  }

  // Where the first process has its folder.
  void look_at(const fs::path& path) {
    path_ = path;
    checkpoints_.emplace(path_ / "checkpoints",
                         train::CheckpointConfig{.keep_last = recipe().train.keep_checkpoints});
  }

  void place_in(track::RunFolder folder) {
    folder_.emplace(std::move(folder));
    remove_half_shared(folder_->path());
    look_at(folder_->path());
    if (batch_) {
      const fs::path& path = folder_->path();
      write_file_atomically(path / "find-batch.json",
                            batch_curve_json(folder_->name(), *batch_) + "\n");
      write_file_atomically(path / "find-batch.svg",
                            plot::to_svg(batch_curves(folder_->name(), *batch_), 2));
    }
    write_inputs(folder_->path(), prepared_.inputs());
  }

  train::Outcome train(ConsoleStyle style, const StopRequest& stop) override {
    std::optional<train::CheckpointInfo> newest;
    const bool goes_on = !team_
                              .ask_first([&] {
                                newest = checkpoints_->newest_intact(&say_damaged);
                                return std::string(newest ? "goes on" : "");
                              })
                              .empty();
    if (!team_.is_first()) style = ConsoleStyle::kQuiet;
    if (team_.is_first()) introduce(style);
    if (prepared_.resolved().is_auto("optimizer", "lr") && !find_lr(style, stop)) return {};
    std::vector<std::string> varied;
    for (const auto& one : prepared_.varied()) varied.emplace_back(train::name_of(one.value));
    std::optional<RunLog> log;
    std::optional<track::IdentityRecorder> identity;
    std::optional<RunPusher> pusher;
    std::optional<WeightHistograms> histograms;
    std::unique_ptr<train::Observer> console;
    std::vector<train::Observer*> observers;
    if (team_.is_first()) {
      log.emplace(path_ / "metrics.log", newest ? newest->step : 0, labels().part, varied,
                  launch::read_world(launch::process_environment()).local_size);
      if (!prepared_.buckets().empty()) log->noted("buckets " + prepared_.buckets());
      identity.emplace(path_, identity_question(data().parts->files, path_.parent_path(),
                                                newest ? newest->step : 0));
      if (mlflow_) pusher.emplace(path_, *mlflow_);
      console = make_console(style, labels());
      observers = {&*log, console.get()};
      if (recipe().track.histograms) {
        histograms.emplace(path_, newest ? newest->step : 0, prepared_.model());
        observers.push_back(&*histograms);
      }
      track::write_run_schedule(path_, run_schedule(prepared_));
      // One that goes on shows what it began with.
      if (!newest || !fs::exists(track::run_samples_of(path_))) {
        keep_first_samples(path_, prepared_, recipe().track.samples);
      }
    }
    const train::TrainerParts parts{.model = prepared_.model(),
                                    .optimizer = prepared_.optimizer(),
                                    .schedule = prepared_.schedule(),
                                    .lr_factor = prepared_.lr_factor(),
                                    .varied = prepared_.varied(),
                                    .train_samples = *data().train,
                                    .evaluation_samples = data().evaluation(),
                                    .checkpoints = *checkpoints_,
                                    .observers = observers,
                                    .stop = stop,
                                    .until = until_,
                                    .keep_at = steps_to_keep(),
                                    .teacher = prepared_.teacher(),
                                    .text = data().is_text()};
    train::Trainer trainer(parts, recipe().train, prepared_.step_config(),
                           prepared_.training_loader(), prepared_.evaluate_config());
    if (goes_on) trainer.resume(newest);
    if (newest) say_resumed(*newest);
    if (newest && team_.is_first() && style == ConsoleStyle::kJson) {
      print_earlier(path_, newest->step);
    }
    train::Outcome outcome = run_to_its_end(trainer, log);
    // A run that is stopped does not wait; it records what it is made of where it goes on.
    if (identity && outcome.finished) say_unknown(identity->finish());
    if (pusher) say_not_sent(pusher->finish());
    return outcome;
  }

 private:
  // An error that ends the run stands in its log.
  static train::Outcome run_to_its_end(train::Trainer& trainer, std::optional<RunLog>& log) {
    try {
      return trainer.run();
    } catch (const std::exception& error) {
      if (log) log->failed(error.what());
      throw;
    }
  }

  Recipe& recipe() { return prepared_.recipe(); }
  const data::TrainingData& data() const { return prepared_.data(); }

  ConsoleLabels labels() {
    ConsoleLabels labels;
    labels.part = evaluation_part(data());
    labels.run_folder = path_.string();
    if (data().is_text()) {
      labels.item = "tokens";
      labels.items_per_sample = recipe().data.context;
    }
    labels.classifies = !data().is_text();
    return labels;
  }

  // Resolves `lr: auto`, in the run folder too, which also keeps the curve. False where it was told
  // to stop: the next start does it again.
  bool find_lr(ConsoleStyle style, const StopRequest& stop) {
    const train::LrRangeTestConfig config;
    const auto test =
        train::test_lr_range({prepared_.model(), prepared_.optimizer(), *data().train, stop},
                             config, prepared_.step_config(), prepared_.training_loader());
    if (test.stopped) {
      if (team_.is_first()) {
        fmt::print(stderr,
                   "gallop: stopped while looking for a learning rate; to start again: "
                   "gallop train --resume {}\n",
                   path_.string());
      }
      return false;
    }
    const std::string rule = schedule::lr_rules().front().name;
    const double lr = std::stod(
        team_.ask_first([&] { return config::number_text(suggested_lr(rule, config, test)); }));
    prepared_.take_lr(families_, lr);
    if (!team_.is_first()) return true;
    const fs::path folder = folder_->path();
    write_file_atomically(folder / "find-lr.json",
                          lr_curve_json(folder_->name(), rule, test) + "\n");
    write_file_atomically(folder / "find-lr.svg",
                          plot::to_svg({lr_curve(folder_->name(), config, test)}));
    write_file_atomically(folder / "recipe.yaml", recipe_yaml());
    write_file_atomically(folder / kOrigins, origins_yaml());
    if (is_for_people(style)) {
      fmt::print("lr         {:.2g}, found in {} steps ({})\n", lr, test.points.size(),
                 (folder / "find-lr.svg").string());
      std::fflush(stdout);
    }
    return true;
  }

  static bool is_for_people(ConsoleStyle style) {
    return style == ConsoleStyle::kLive || style == ConsoleStyle::kPlain;
  }

  void introduce(ConsoleStyle style) {
    if (!is_for_people(style)) return;
    int64_t parameters = 0;
    for (const auto& parameter : prepared_.model().parameters())
      parameters += parameter.tensor.numel();
    const std::string part = evaluation_part(data());
    if (data().is_text()) {
      fmt::print("data       {}: {} training windows of {} tokens, {} different tokens",
                 recipe().data.reader.name(), format_count(data().train->size()),
                 recipe().data.context, data().names.size());
    } else {
      fmt::print("data       {}: {} training images of {}x{}x{} in {} classes",
                 recipe().data.reader.name(), format_count(data().train->size()),
                 prepared_.inputs().channels, prepared_.inputs().height, prepared_.inputs().width,
                 data().names.size());
    }
    fmt::print("{}\n", part.empty() ? std::string(", no part to evaluate on")
                                    : fmt::format("; evaluated on the {} part", part));
    fmt::print("model      {}, {} parameters\n", recipe().model.name(), format_count(parameters));
    fmt::print("training   {}\n", prepared_.describe_training());
    if (!team_.is_alone()) {
      fmt::print("processes  {}, {}\n", team_.size(), recipe().strategy.name());
    }
    if (!prepared_.buckets().empty()) fmt::print("buckets    {}\n", prepared_.buckets());
    fmt::print("run        {}\n", folder_->path().string());
    if (batch_) {
      fmt::print("batch      {}, found in {}: {} ({})\n", format_count(recipe().data.batch),
                 format_duration(batch_->seconds), why_suggested(*batch_),
                 (folder_->path() / "find-batch.svg").string());
    }
    if (const auto& scaling = recipe().lr_scaling; scaling.scales()) {
      const double lr = prepared_.optimizer().base_lr();
      fmt::print("lr         {:.4g}, {} from {:g} for a batch of {}\n", lr * prepared_.lr_factor(),
                 scaling.rule, lr, format_count(*scaling.batch));
    }
    std::fflush(stdout);
  }

  std::vector<int64_t> steps_to_keep() const {
    // Where nobody else could begin with them, none are kept.
    const bool is_of_use =
        prepared_.device().is_cpu() && may_begin_alike(prepared_.recipe(), prepared_.recipe());
    if (!share_ || !is_of_use) return {};
    return PlannedSteps(families_, prepared_.recipe(), data().train->size()).parting_steps(*share_);
  }

  void say_resumed(const train::CheckpointInfo& from) const {
    if (shared_) {
      fmt::print(stderr, "gallop: the first {} steps are those of {}\n",
                 format_count(shared_->step), shared_->run);
    } else {
      fmt::print(stderr, "gallop: resumed from step {}\n", from.step);
    }
  }

  static void say_unknown(const std::string& trouble) {
    if (trouble.empty()) return;
    fmt::print(stderr, "gallop: 'gallop runs verify' will not know the data of this run: {}\n",
               trouble);
  }

  void say_not_sent(const std::string& trouble) const {
    if (trouble.empty()) return;
    fmt::print(stderr, "gallop: {}; 'gallop runs push {} --mlflow {}' sends the rest\n", trouble,
               path_.string(), mlflow_->address);
  }

  static void say_damaged(const std::string& damage) {
    fmt::print(stderr, "gallop: {}; going on from the checkpoint before it\n", damage);
  }

  const Families& families_;
  const Team& team_;
  train::Interval until_;
  std::optional<track::mlflow::Target> mlflow_;
  std::optional<int64_t> share_;
  std::optional<SharedBeginning> shared_;
  PreparedRecipe prepared_;
  std::optional<track::RunFolder> folder_;  // Of the first process.
  fs::path path_;
  std::optional<train::CheckpointStore> checkpoints_;
  std::optional<FoundBatch> batch_;  // Where the recipe left it open.
};

// Finished: the newest checkpoint stands at the last step of the run. One that ended before it
// began has no log.
bool is_finished(const fs::path& folder) {
  const fs::path log = folder / "metrics.log";
  if (!fs::exists(log)) return false;
  const auto records = track::read_log(log).current();
  return !records.empty() && records.back().kind == "end" &&
         records.back().texts.at("how") == "finished";
}

// For a run that goes on: what was left open at its beginning has been found.
std::vector<Override> without_auto(std::vector<Override> overrides) {
  std::erase_if(overrides, [](const Override& one) {
    return one.value == "auto" && (one.path == "data.batch_size" || one.path == "optimizer.lr" ||
                                   one.path == "parallel.bucket");
  });
  return overrides;
}

// For `batch: auto`, in bounded time: the largest that fits is not looked for. Nothing where a stop
// is asked for.
std::optional<FoundBatch> find_batch_for(const Recipe& recipe, BatchTrial trial, const Team& team,
                                         const StopRequest& stop) {
  constexpr double kStepSeconds = 5, kNoiseSeconds = 120;
  BatchQuestion question(std::move(trial), recipe);
  question.limits.largest = false;
  question.limits.step_seconds = kStepSeconds;
  question.noise_seconds = kNoiseSeconds;
  const auto say = [&team](const std::string& line) {
    if (team.is_first()) fmt::print(stderr, "gallop: {}\n", line);
  };
  say(fmt::format("data.batch_size: auto: trying batches, each in {} of {} own",
                  team.is_alone() ? "a process" : fmt::format("{} processes", team.size()),
                  team.is_alone() ? "its" : "their"));
  auto found = find_batch(question, team, stop, {});
  if (!found) say("stopped while looking for a batch; nothing was made");
  return found;
}

// What is known of a run before its data are read.
struct Plan {
  ResolvedRecipe resolved;
  std::optional<track::RunFolder> folder{};  // Of a run that goes on.
  std::vector<Override> overrides{};         // Of such a run.
  std::vector<Sibling> siblings{};           // That may begin like it, where steps are shared.
};

void plan_sharing(const Families& families, const RunPlace& place, Plan& plan) {
  if (!place.share) return;
  plan.siblings = find_siblings(families, place.runs, place.name, plan.resolved);
}

std::optional<Plan> plan_resume(const Families& families, const RunPlace& place,
                                const std::string& name, const std::vector<Override>& overrides) {
  track::RunFolder folder = track::RunFolder::open(track::RunFolder::find(place.runs, name));
  if (overrides.empty() && is_finished(folder.path())) {
    fmt::print(
        "nothing to resume: {} is finished. To train longer: gallop train --resume {} "
        "train.epochs=...\n",
        folder.path().string(), folder.path().string());
    return std::nullopt;
  }
  const fs::path file = folder.path() / "recipe.yaml";
  auto resolved = parse_recipe(families, track::RunFolder::read_recipe(folder.path()),
                               file.string(), overrides);
  warn_of_old_names(resolved);
  if (resolved.is_auto("data", "batch_size")) {
    throw UsageError(
        "data.batch_size: 'auto' cannot be resolved when resuming; give a number to "
        "change it");
  }
  Plan plan{.resolved = std::move(resolved), .folder = std::move(folder), .overrides = overrides};
  plan_sharing(families, place, plan);
  return plan;
}

std::optional<Plan> plan_start(const Families& families, const RunPlace& place,
                               const std::string& recipe, const std::vector<Override>& overrides) {
  const fs::path runs(place.runs);
  if (!place.name.empty()) {
    if (place.resume_if_there && track::RunFolder::is_run(runs / place.name))
      return plan_resume(families, place, (runs / place.name).string(), without_auto(overrides));
    refuse_existing_run(runs / place.name);
  }
  Plan plan{.resolved = load_recipe(families, recipe, overrides)};
  plan_sharing(families, place, plan);
  return plan;
}

// What a run goes on with in place of its recipe.
void add_origins(const fs::path& folder, const std::vector<Override>& overrides) {
  if (overrides.empty() || !fs::exists(folder / kOrigins)) return;
  std::string text = read_file(folder / kOrigins);
  text += fmt::format("# from {} on, on the command line:", track::utc_now());
  for (const Override& one : overrides) text += fmt::format(" {}={}", one.path, one.value);
  write_file_atomically(folder / kOrigins, text + "\n");
}

// Puts the batch that it finds in the recipe. Nothing where a stop is asked for.
using FindBatch = std::function<std::optional<FoundBatch>(const Recipe&)>;

std::optional<FoundBatch> resolve_batch(ResolvedRecipe& resolved, const FindBatch& find) {
  auto found = find(resolved.recipe);
  if (!found) return {};
  resolved.resolve("data.batch_size", std::to_string(found->suggested()));
  for (const auto& [path, value] : found->format) resolved.resolve(path, value);
  return found;
}

// The first process makes the plan and has the folder; the others follow.
std::unique_ptr<TrainingRun> prepare_run(const Families& families, const RunPlace& place,
                                         const Team& team,
                                         const std::function<std::optional<Plan>()>& make_plan,
                                         const FindBatch& find = {}) {
  if (place.share && !team.is_alone()) {
    throw UsageError("--share is for one process, not for several that train together");
  }
  std::optional<Plan> plan;
  const std::string told = team.ask_first([&] {
    plan = make_plan();
    return plan ? to_text(plan->resolved) : std::string();
  });
  if (told.empty()) return nullptr;
  ResolvedRecipe resolved = plan ? std::move(plan->resolved) : from_text(families, told);
  std::optional<FoundBatch> batch;
  if (resolved.is_auto("data", "batch_size")) {
    batch = resolve_batch(resolved, find);
    if (!batch) return nullptr;
  }
  auto run = std::make_unique<PreparedRun>(families, std::move(resolved), place, team);
  const std::string path = team.ask_first([&] {
    if (batch) run->take_batch(std::move(*batch));
    if (plan->folder) {
      const fs::path& folder = plan->folder->path();
      run->check_against(folder);
      if (!plan->overrides.empty() || run->has_measured_buckets()) {
        const std::string recipe = run->recipe_yaml();
        if (recipe != track::RunFolder::read_recipe(folder)) {
          note_foreign_steps(folder, "the first ones were trained with other options");
        }
        write_file_atomically(folder / "recipe.yaml", recipe);
        add_origins(folder, plan->overrides);
      }
      run->place_in(std::move(*plan->folder));
    } else if (place.name.empty()) {
      run->place_in(track::RunFolder::create_numbered(place.runs, run->recipe_name(),
                                                      run->recipe_yaml(), run->info()));
    } else {
      run->place_in(
          track::RunFolder::create(place.runs, place.name, run->recipe_yaml(), run->info()));
    }
    if (!plan->folder) write_file_atomically(run->path() / kOrigins, run->origins_yaml());
    if (!team.is_alone()) {
      note_foreign_steps(run->path(), "several processes have trained some of them");
    }
    if (!place.from.empty()) run->begin_from(track::RunFolder::find(place.runs, place.from));
    if (place.share) run->share_with(plan->siblings);
    RunNote::tell(run->path());
    return run->path().string();
  });
  if (!team.is_first()) run->look_at(path);
  return run;
}

}  // namespace

void refuse_existing_run(const fs::path& run) {
  if (!track::RunFolder::is_run(run)) return;
  throw UsageError(fmt::format(
      "there is a run {} already; take another --name, or --continue to resume it", run.string()));
}

std::unique_ptr<TrainingRun> start_run(const Families& families, const RunPlace& place,
                                       const std::string& recipe,
                                       const std::vector<Override>& overrides,
                                       const StopRequest& stop, const Team& team) {
  return prepare_run(
      families, place, team, [&] { return plan_start(families, place, recipe, overrides); },
      [&](const Recipe& open) {
        return find_batch_for(
            open, {.probe = {}, .recipe = recipe, .runs = place.runs, .overrides = overrides}, team,
            stop);
      });
}

std::unique_ptr<TrainingRun> resume_run(const Families& families, const RunPlace& place,
                                        const std::string& name,
                                        const std::vector<Override>& overrides, const Team& team) {
  return prepare_run(families, place, team,
                     [&] { return plan_resume(families, place, name, overrides); });
}

}  // namespace gallop::app
