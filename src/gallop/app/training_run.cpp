#include "gallop/app/training_run.h"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/batch_curve.h"
#include "gallop/app/batch_finder.h"
#include "gallop/app/choice_reminder.h"
#include "gallop/app/common_steps.h"
#include "gallop/app/end_of_start_up.h"
#include "gallop/app/identity.h"
#include "gallop/app/lr_curve.h"
#include "gallop/app/prepared_recipe.h"
#include "gallop/app/print.h"
#include "gallop/app/recipe.h"
#include "gallop/app/run_handoff.h"
#include "gallop/app/run_log.h"
#include "gallop/app/run_plan.h"
#include "gallop/app/run_pusher.h"
#include "gallop/app/run_samples.h"
#include "gallop/app/run_schedule.h"
#include "gallop/app/session.h"
#include "gallop/app/shared_prefix.h"
#include "gallop/app/signals.h"
#include "gallop/app/trained_run.h"
#include "gallop/app/weight_histograms.h"
#include "gallop/base/file.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/launch/world.h"
#include "gallop/track/data_listing.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_samples.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

namespace {

constexpr const char* kOrigins = "origins.yaml";

// What a run goes on with in place of its recipe.
void add_origins(const fs::path& folder, const std::vector<OptionChange>& changes) {
  if (changes.empty() || !fs::exists(folder / kOrigins)) return;
  std::string text = read_file(folder / kOrigins);
  text += fmt::format("# from {} on, on the command line:", track::utc_now());
  for (const OptionChange& one : changes) text += fmt::format(" {}={}", one.option, one.wanted);
  write_file_atomically(folder / kOrigins, text + "\n");
}

class PreparedRun final : public TrainingRun {
 public:
  /// `trainer`: of the checkpoint that it continues from, as RunPlan has it.
  PreparedRun(const Registries& registries, ResolvedRecipe resolved, const RunPlace& place,
              const DistributedContext& context, const std::map<std::string, std::string>& trainer)
      : registries_(registries),
        context_(context),
        until_(place.until),
        mlflow_(place.mlflow),
        share_(place.share),
        allow_changed_data_(place.allow_changed_data),
        prepared_(registries, std::move(resolved), place.runs, context.collectives(), trainer) {}

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
    info.processes = context_.size();
    for (const auto& file : data().files) {
      std::error_code ignored;
      info.data_files.push_back({fs::absolute(file).lexically_normal().string(),
                                 static_cast<int64_t>(fs::file_size(file, ignored))});
    }
    return info;
  }

  // What the first process checks of a run that continues: the data must be those that it began
  // with, where it has come so far as to say.
  void check_against(const RunPlan& plan) {
    const fs::path& folder = plan.folder->path();
    if (has_inputs(folder)) check_fits(prepared_.inputs(), read_inputs(folder));
    if (prepared_.resolved().is_auto("optimizer", "lr") && plan.checkpoint) {
      throw UsageError("optimizer.lr: 'auto' cannot be resolved when resuming; give a number");
    }
    changed_data_ = check_data(folder, data().files, allow_changed_data_);
  }

  // Takes the checkpoint of a run that continues, with all that can be wrong with that. `plan`: of
  // the first process.
  void restore(const std::optional<RunPlan>& plan, const StopRequest& stop) {
    const std::string path = context_.run_on_rank0([&] { return plan->folder->path().string(); });
    look_at(path);
    if (prepared_.resolved().is_auto("optimizer", "lr")) return;
    build_trainer(stop);
    if (plan) checkpoint_ = plan->checkpoint;
    resume_trainer();
    context_.run_on_rank0([&] {
      if (plan->is_finished && !plan->changes.empty() && trainer_->has_ended()) {
        throw UsageError(fmt::format(
            "{} is finished, and with {} there is nothing left to train, so that its weights would "
            "not be those of its recipe. Nothing was changed; to train longer, give train.epochs "
            "or, where it ended early, train.early_stopping.patience",
            path, describe(plan->changes)));
      }
    });
  }

  // The first process, once nothing can be refused any more.
  void commit(RunPlan& plan) {
    plan.folder->claim();
    const fs::path& folder = plan.folder->path();
    if (!plan.changes.empty() || has_measured_buckets()) {
      const std::string recipe = recipe_yaml();
      if (recipe != track::RunFolder::read_recipe(folder)) {
        note_foreign_steps(folder, "the first ones were trained with other options");
        write_file_atomically(folder / "recipe.yaml", recipe);
        add_origins(folder, plan.changes);
      }
    }
    if (!changed_data_.empty()) note_foreign_steps(folder, "the data have changed since");
    changed_options_ = describe(plan.changes);
    if (!changed_options_.empty()) {
      print_error("gallop: {} continues with other options: {}\n", folder.string(),
                  changed_options_);
    }
    if (!changed_data_.empty()) {
      print_error("gallop: {} continues with other data: {}\n", folder.string(), changed_data_);
    }
    place_in(std::move(*plan.folder));
  }

  void take_batch(FoundBatch found) { batch_ = std::move(found); }

  // Looks for another run's newest checkpoint, for a run that has none of its own.
  void find_beginning(const fs::path& folder) {
    check_fits(prepared_.inputs(), read_inputs(folder));
    beginning_ = train::CheckpointStore(folder / "checkpoints").newest_intact(&say_damaged);
    if (beginning_) return;
    throw UsageError(fmt::format("{} has no checkpoint to begin with", folder.string()));
  }

  // Begins with what was found.
  void begin_from(const fs::path& folder) {
    if (!beginning_ || !checkpoints_->list().empty()) return;
    checkpoints_->adopt(*beginning_);
    note_foreign_steps(path_, "the first ones are those of " + folder.string());
  }

  // Begins where it and one of these part, unless it has begun already.
  void share_with(const std::vector<PrefixSource>& prefix_sources) {
    if (!checkpoints_->list().empty()) return;
    const auto length =
        train::Length::of(recipe().train, recipe().data.batch_size, data().train->size());
    // The last step is done here, so that there is a process whose memory and speed can be told.
    const int64_t last = std::min(length.step_of(until_), length.steps - 1);
    shared_ =
        share_prefix(registries_, prepared_, info(), prefix_sources, path_, *checkpoints_, last);
  }

  void write_origins() { write_file_atomically(path_ / kOrigins, origins_yaml()); }

  // Where the first process has its folder.
  void look_at(const fs::path& path) {
    if (checkpoints_ && path == path_) return;  // The trainer has it.
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
    track::write_data_listing(folder_->path(), track::list_data(data().files));
  }

  train::Outcome train(ConsoleStyle style, SignalGuard& signals) override {
    const StopRequest& stop = signals.stop();
    std::optional<RunLog> log;
    std::optional<StartUpEnd> start_up_end;
    if (context_.is_first()) start_up_end.emplace(/*file=*/-1, "", how_to_resume());
    if (!context_.is_first()) style = ConsoleStyle::kQuiet;
    if (context_.is_first()) introduce(style);
    if (prepared_.resolved().is_auto("optimizer", "lr") && !find_lr(style, stop)) return {};
    if (!trainer_) build_trainer(stop);
    if (!is_resumed_) {
      context_.run_on_rank0([&] { checkpoint_ = checkpoints_->newest_intact(&say_damaged); });
      resume_trainer();
    }
    const std::optional<train::CheckpointInfo>& newest = checkpoint_;
    std::vector<std::string> scheduled;
    for (const auto& one : prepared_.scheduled()) scheduled.emplace_back(train::name_of(one.value));
    std::optional<track::IdentityRecorder> identity;
    std::optional<RunPusher> pusher;
    std::optional<WeightHistograms> histograms;
    std::unique_ptr<train::Observer> console;
    EndOfStartUp first_step(signals);
    std::vector<std::unique_ptr<ChoiceReminder>> reminders;
    std::vector<train::Observer*> observers{&first_step};
    if (context_.is_first()) {
      log.emplace(path_ / "metrics.log", newest ? newest->step : 0, labels().part, scheduled,
                  launch::read_world(launch::process_environment()).local_size);
      start_up_end.emplace(log->file(), log->stopped_record(), how_to_resume());
      for (const MadeChoice& choice : choices()) {
        log->noted(fmt::format("measured for {}: {}", choice.options, choice.evidence));
      }
      if (batch_) {
        log->noted(fmt::format("measured for data.batch_size=auto: {}, {}",
                               recipe().data.batch_size, why_suggested(*batch_)));
      }
      if (!prepared_.buckets().empty()) log->noted("buckets " + prepared_.buckets());
      for (const std::string& line : data().notes) log->noted("data: " + line);
      if (!changed_options_.empty()) log->noted("options changed: " + changed_options_);
      if (!changed_data_.empty()) log->noted("data changed: " + changed_data_);
      identity.emplace(path_, identity_question(data().files, path_.parent_path(),
                                                newest ? newest->step : 0, recipe().plugins));
      if (mlflow_) pusher.emplace(path_, *mlflow_);
      console = make_console(style, labels());
      observers.insert(observers.end(), {&*log, console.get()});
      if (recipe().track.histograms) {
        histograms.emplace(path_, newest ? newest->step : 0, prepared_.model());
        observers.push_back(&*histograms);
      }
      track::write_run_schedule(path_, run_schedule(prepared_));
      // One that goes on shows what it began with.
      if (!newest || !fs::exists(track::run_samples_of(path_))) {
        keep_first_samples(path_, prepared_, recipe().track.log_samples);
      }
      for (const MadeChoice& choice : choices()) {
        if (!choice.is_uncertain) continue;
        reminders.push_back(
            std::make_unique<ChoiceReminder>(choice, resume_command(), std::vector(observers)));
      }
      for (const auto& reminder : reminders) observers.push_back(reminder.get());
    }
    trainer_->observe(observers);
    if (newest) say_resumed(*newest);
    if (newest && context_.is_first() && style == ConsoleStyle::kJson) {
      print_earlier(path_, newest->step);
    }
    train::Outcome outcome = run_to_its_end(*trainer_, log);
    // A run that is stopped does not wait; it records what it is made of where it goes on.
    if (identity && outcome.finished) say_unknown(identity->finish());
    if (pusher) say_not_sent(pusher->finish());
    return outcome;
  }

 private:
  void build_trainer(const StopRequest& stop) {
    const train::TrainerParts parts{.model = prepared_.model(),
                                    .optimizer = prepared_.optimizer(),
                                    .schedule = prepared_.schedule(),
                                    .lr_factor = prepared_.lr_factor(),
                                    .scheduled = prepared_.scheduled(),
                                    .train_samples = *data().train,
                                    .evaluation_samples = data().evaluation(),
                                    .checkpoints = *checkpoints_,
                                    .stop = stop,
                                    .until = until_,
                                    .keep_at = steps_to_keep(),
                                    .allow_changed_data = allow_changed_data_,
                                    .teacher = prepared_.teacher()};
    trainer_.emplace(parts, recipe().train, prepared_.step_config(), prepared_.training_loader(),
                     prepared_.evaluate_config());
  }

  // From the first process's checkpoint, where it has one.
  void resume_trainer() {
    if (!context_.run_on_rank0([&] { return checkpoint_.has_value(); })) return;
    trainer_->resume(checkpoint_);
    is_resumed_ = true;
  }

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
  const data::DataModule& data() const { return prepared_.data(); }

  ConsoleLabels labels() {
    ConsoleLabels labels;
    labels.part = evaluation_part(data());
    labels.run_folder = path_.string();
    const data::Signature& signature = prepared_.inputs();
    labels.item = item_of(signature);
    if (signature.is_text()) labels.items_per_sample = signature.context;
    labels.classifies = prepared_.task().target == train::MetricTask::Target::kClasses;
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
      if (context_.is_first()) {
        print_error("gallop: stopped while looking for a learning rate; to start again: {}\n",
                    resume_command());
      }
      return false;
    }
    const std::string rule = schedule::lr_rules().front().name;
    const double lr = context_.run_on_rank0([&] { return suggested_lr(rule, config, test); });
    prepared_.take_lr(registries_, lr);
    if (!context_.is_first()) return true;
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

  // Also of formats that were measured before the batch.
  std::vector<MadeChoice> choices() const {
    std::vector<MadeChoice> all = batch_ ? batch_->choices : std::vector<MadeChoice>();
    all.insert(all.end(), prepared_.choices().begin(), prepared_.choices().end());
    return all;
  }

  std::string resume_command() const {
    return shell_line({"gallop", "train", "--resume", path_.string()});
  }

  std::string how_to_resume() const {
    return fmt::format("gallop: to go on: {}\n", resume_command());
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
    fmt::print("data       {}: {}", recipe().data.module.name(),
               describe_training_data(prepared_.inputs(), data().train->size()));
    fmt::print("{}\n", part.empty() ? std::string(", no part to evaluate on")
                                    : fmt::format("; evaluated on the {} part", part));
    fmt::print("model      {}, {} parameters\n", recipe().model.name(), format_count(parameters));
    fmt::print("training   {}\n", prepared_.describe_training());
    if (!context_.is_alone()) {
      fmt::print("processes  {}, {}\n", context_.size(), recipe().strategy.name());
    }
    if (!prepared_.buckets().empty()) fmt::print("buckets    {}\n", prepared_.buckets());
    fmt::print("run        {}\n", folder_->path().string());
    if (batch_) {
      fmt::print("batch      {}, found in {}: {} ({})\n", format_count(recipe().data.batch_size),
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
    // Where no other run could begin with them, none are kept.
    const bool is_of_use =
        prepared_.device().is_cpu() && shares_prefix(prepared_.recipe(), prepared_.recipe());
    if (!share_ || !is_of_use) return {};
    return PlannedSteps(registries_, prepared_.recipe(), data().train->size())
        .branch_points(*share_);
  }

  void say_resumed(const train::CheckpointInfo& from) const {
    if (shared_) {
      print_error("gallop: the first {} steps are those of {}\n", format_count(shared_->step),
                  shared_->run);
    } else {
      print_error("gallop: resumed from step {}\n", from.step);
    }
  }

  static void say_unknown(const std::string& trouble) {
    if (trouble.empty()) return;
    print_error("gallop: 'gallop runs verify' will not know the data of this run: {}\n", trouble);
  }

  void say_not_sent(const std::string& trouble) const {
    if (trouble.empty()) return;
    print_error(
        "gallop: {}; to send the rest: {}\n", trouble,
        shell_line({"gallop", "runs", "push", path_.string(), "--mlflow", mlflow_->address}));
  }

  static void say_damaged(const std::string& damage) {
    print_error("gallop: {}; going on from the checkpoint before it\n", damage);
  }

  const Registries& registries_;
  const DistributedContext& context_;
  train::Interval until_;
  std::optional<track::mlflow::Target> mlflow_;
  std::optional<int64_t> share_;
  bool allow_changed_data_;
  std::optional<SharedPrefix> shared_;
  std::optional<train::CheckpointInfo> beginning_;  // Another run's, with which this one begins.
  PreparedRecipe prepared_;
  std::optional<track::RunFolder> folder_;  // Of the first process.
  fs::path path_;
  std::optional<train::CheckpointStore> checkpoints_;
  std::optional<FoundBatch> batch_;  // Where the recipe left it open.
  // Where it was resumed, in a line each.
  std::string changed_options_, changed_data_;
  std::optional<train::CheckpointInfo>
      checkpoint_;  // Of the first process, that it continues from.
  std::optional<train::Trainer> trainer_;
  bool is_resumed_ = false;  // The trainer, from the checkpoint.
};

// For `batch_size: auto`, in bounded time: the largest that fits is not looked for. Nothing where a
// stop is asked for.
std::optional<FoundBatch> find_batch_for(const Recipe& recipe, BatchTrial trial,
                                         const DistributedContext& context,
                                         const StopRequest& stop) {
  constexpr double kStepSeconds = 5, kNoiseSeconds = 120;
  BatchQuestion question(std::move(trial), recipe);
  question.limits.largest = false;
  question.limits.step_seconds = kStepSeconds;
  question.noise_seconds = kNoiseSeconds;
  const auto say = [&context](const std::string& line) {
    if (context.is_first()) print_error("gallop: {}\n", line);
  };
  say(fmt::format("data.batch_size: auto: trying batches, each in {} of {} own",
                  context.is_alone() ? "a process" : fmt::format("{} processes", context.size()),
                  context.is_alone() ? "its" : "their"));
  auto found = find_batch(question, context, stop, {});
  if (!found) say("stopped while looking for a batch; nothing was made");
  return found;
}

// Puts the batch that it finds in the recipe. Nothing where a stop is asked for.
using FindBatch = std::function<std::optional<FoundBatch>(const Recipe&)>;

std::optional<FoundBatch> resolve_batch(ResolvedRecipe& resolved, const FindBatch& find) {
  auto found = find(resolved.recipe);
  if (!found) return {};
  resolved.resolve("data.batch_size", std::to_string(found->suggested()));
  for (const Override& one : found->format) resolved.resolve(one.path, one.value);
  return found;
}

// What the other processes need of it: a line of JSON, and the recipe, which is any bytes.
std::string plan_text(RunPlan& plan) {
  const nlohmann::json head{{"trainer", plan.trainer}, {"resumes", plan.folder.has_value()}};
  return head.dump() + "\n" + to_text(plan.resolved);
}

// The first process makes the plan and has the folder; the others follow. A run that continues is
// changed only when all is known to fit.
std::unique_ptr<TrainingRun> prepare_run(const Registries& registries, const RunPlace& place,
                                         const DistributedContext& context,
                                         const std::function<std::optional<RunPlan>()>& make_plan,
                                         const StopRequest& stop, const FindBatch& find = {}) {
  if (place.share && !context.is_alone()) {
    throw UsageError("--share is for one process, not for several that train together");
  }
  std::optional<RunPlan> plan;
  fs::path from;
  const std::string plan_bytes = context.run_on_rank0([&] {
    if (!place.from.empty()) from = track::RunFolder::find(place.runs, place.from);
    plan = make_plan();
    return plan ? plan_text(*plan) : std::string();
  });
  if (plan_bytes.empty()) return nullptr;
  const size_t head_end = plan_bytes.find('\n');
  const auto plan_of_first = nlohmann::json::parse(plan_bytes.substr(0, head_end));
  ResolvedRecipe resolved =
      plan ? std::move(plan->resolved) : from_text(registries, plan_bytes.substr(head_end + 1));
  std::optional<FoundBatch> batch;
  if (find && resolved.is_auto("data", "batch_size")) {
    batch = resolve_batch(resolved, find);
    if (!batch) return nullptr;
  }
  const auto components = resolved.recipe.registries;
  auto run = std::make_unique<PreparedRun>(
      *components, std::move(resolved), place, context,
      plan_of_first.at("trainer").get<std::map<std::string, std::string>>());
  const bool resumes = plan_of_first.at("resumes").get<bool>();
  context.run_on_rank0([&] {
    if (resumes) run->check_against(*plan);
    if (!from.empty() && !plan->checkpoint) run->find_beginning(from);
  });
  if (resumes) run->restore(plan, stop);
  // No other process may have failed when the first one writes.
  if (!context.is_alone()) parallel::any_of(*context.collectives(), false);
  const std::string path = context.run_on_rank0([&] {
    if (batch) run->take_batch(std::move(*batch));
    if (plan->folder) {
      run->commit(*plan);
    } else if (place.name.empty()) {
      run->place_in(track::RunFolder::create_numbered(place.runs, run->recipe_name(),
                                                      run->recipe_yaml(), run->info()));
      run->write_origins();
    } else {
      run->place_in(
          track::RunFolder::create(place.runs, place.name, run->recipe_yaml(), run->info()));
      run->write_origins();
    }
    if (!context.is_alone()) {
      note_foreign_steps(run->path(), "several processes have trained some of them");
    }
    if (!from.empty()) run->begin_from(from);
    if (place.share) run->share_with(plan->prefix_sources);
    RunHandoff::tell(run->path());
    return run->path().string();
  });
  if (!context.is_first()) run->look_at(path);
  return run;
}

}  // namespace

void refuse_existing_run(const fs::path& run) {
  if (!track::RunFolder::is_run(run)) return;
  throw UsageError(fmt::format(
      "there is a run {} already; take another --name, or --continue to resume it", run.string()));
}

std::unique_ptr<TrainingRun> start_run(const Registries& registries, const RunPlace& place,
                                       const std::string& recipe,
                                       const std::vector<Override>& overrides,
                                       const StopRequest& stop, const DistributedContext& context) {
  FindBatch find;
  if (place.can_probe) {
    find = [&](const Recipe& open) {
      return find_batch_for(
          open, {.probe = {}, .recipe = recipe, .runs = place.runs, .overrides = overrides},
          context, stop);
    };
  }
  return prepare_run(
      registries, place, context, [&] { return plan_start(registries, place, recipe, overrides); },
      stop, find);
}

std::unique_ptr<TrainingRun> resume_run(const Registries& registries, const RunPlace& place,
                                        const std::string& name,
                                        const std::vector<Override>& overrides,
                                        const StopRequest& stop,
                                        const DistributedContext& context) {
  return prepare_run(
      registries, place, context, [&] { return plan_resume(registries, place, name, overrides); },
      stop);
}

}  // namespace gallop::app
