#include "gallop/tune/samplers/gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/coordinates.h"
#include "gallop/tune/gaussian_process/model.h"
#include "gallop/tune/gaussian_process/sample.h"
#include "gallop/tune/gaussian_process/search.h"
#include "gallop/tune/normal.h"
#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/samplers/sobol.h"

namespace gallop::tune {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMostObjectives = 3;
// Fewer samples with several objectives, as each sample needs its own box decomposition.
constexpr size_t kHypervolumeSamples = 16;

// The independent random streams of one trial.
enum class Draw : uint32_t { kStart = 0, kSearch = 1, kNormals = 2 };

/// The observations of the ended trials, in the order in which they ended.
struct Measured {
  std::vector<std::vector<double>> points;
  std::vector<std::vector<double>> values;  ///< For each objective or limit, one value per point.
};

/// The models of all objectives and constraints.
struct Models {
  std::vector<Model> losses, violations;
};

using Trials = std::vector<const Trial*>;

class GpSampler final : public Sampler {
 public:
  GpSampler(const GpConfig& config, const StudySettings& settings)
      : config_(config), coordinates_(settings.space) {}

  std::optional<Proposal> ask(const Study& study, int64_t number) override;

 private:
  Point start_point(const Study& study, int64_t number) const;
  Models& models_of(const Study& study);
  Trials ended_trials(const Study& study) const;
  Measured losses_of(const Study& study, const Trials& trials) const;
  Measured violations_of(const Study& study, const Trials& trials) const;
  void set_pending(const Study& study, Models& models) const;
  Matrix normals(const Study& study, int64_t number, size_t quantity, size_t samples,
                 size_t pending) const;
  std::vector<Point> promising(const Study& study, int64_t number, const Trials& trials,
                               Models& models) const;

  GpConfig config_;
  Coordinates coordinates_;
  std::optional<Models> models_;
};

bool is_complete(const Trial* trial) { return trial->state == TrialState::kComplete; }

/// The loss attributed to a pruned trial: its last report, but at least the median of the trials
/// that completed before.
double pruned_loss(const Trial& trial, const std::vector<double>& sorted_before) {
  if (trial.reports.empty() || sorted_before.empty()) return kNan;
  return std::max(trial.reports.back().loss, sorted_before[sorted_before.size() / 2]);
}

/// The reference point for the expected hypervolume improvement: above the front by a fraction of
/// its extent in each objective (of all losses, if the front is degenerate). Alternates between a
/// near point, which favors gaps within the front, and a far one, which favors its ends: with only
/// near ones a short front grows slowly, and with only far ones most trials go to the ends.
std::vector<double> reference_above(const LossRows& front, const LossRows& all, int64_t number) {
  const double share = number % 2 == 0 ? 0.1 : 1;
  std::vector<double> reference;
  for (size_t k = 0; k < front[0].size(); ++k) {
    const auto less = [k](const auto& a, const auto& b) { return a[k] < b[k]; };
    auto [low, high] = std::minmax_element(front.begin(), front.end(), less);
    if ((*low)[k] == (*high)[k]) {
      std::tie(low, high) = std::minmax_element(all.begin(), all.end(), less);
    }
    reference.push_back((*high)[k] + std::max(share * ((*high)[k] - (*low)[k]), 1e-6));
  }
  return reference;
}

Models& GpSampler::models_of(const Study& study) {
  if (!models_) {
    models_.emplace();
    const std::vector<bool> categorical = coordinates_.categorical();
    // Hypervolumes need untransformed losses.
    const auto large = study.objectives() == 1 ? LargeValues::kDrawnTogether : LargeValues::kKept;
    for (size_t k = 0; k < study.objectives(); ++k) {
      models_->losses.emplace_back(categorical, config_.exact, large);
    }
    for (size_t k = 0; k < study.settings().limits.size(); ++k) {
      models_->violations.emplace_back(categorical, false);
    }
  }
  return *models_;
}

Trials GpSampler::ended_trials(const Study& study) const {
  Trials trials;
  std::set<int64_t> seen;
  for (const int64_t number : study.finished()) {
    const Trial& trial = study.trials()[static_cast<size_t>(number)];
    if (!trial.is_finished() || !seen.insert(number).second) continue;
    trials.push_back(&trial);
  }
  // Subsamples many trials: half are the best ones and half the last ones. The selection is
  // constant while the next quarter of most_trials arrives, so that models can grow incrementally.
  const auto most = static_cast<size_t>(config_.most_trials),
             quarter = std::max<size_t>(most / 4, 1);
  if (trials.size() <= most) return trials;
  const size_t fixed = (trials.size() - most + quarter - 1) / quarter * quarter + most - quarter;
  const auto last = trials.begin() + static_cast<ptrdiff_t>(fixed);
  Trials best(trials.begin(), last - static_cast<ptrdiff_t>(quarter));
  const auto rank = [](const Trial* trial) {
    const double loss = is_complete(trial) ? trial->losses[0] : kNan;
    return std::pair(std::isnan(loss), std::isnan(loss) ? 0 : loss);
  };
  std::stable_sort(best.begin(), best.end(),
                   [&rank](const Trial* a, const Trial* b) { return rank(a) < rank(b); });
  best.resize(std::min(best.size(), most / 2));
  best.insert(best.end(), last - static_cast<ptrdiff_t>(quarter), trials.end());
  return best;
}

// Failed trials have no loss: they are imputed with the worst one.
Measured GpSampler::losses_of(const Study& study, const Trials& trials) const {
  Measured measured{.points = {}, .values = LossRows(study.objectives())};
  std::vector<double> sorted;
  for (const Trial* const trial : trials) {
    measured.points.push_back(coordinates_.encoded(trial->point));
    for (size_t k = 0; k < study.objectives(); ++k) {
      double loss = kNan;
      if (is_complete(trial)) {
        loss = trial->losses[k];
      } else if (trial->state == TrialState::kPruned && k == 0) {
        loss = pruned_loss(*trial, sorted);
      }
      measured.values[k].push_back(loss);
    }
    const double loss = measured.values[0].back();
    if (is_complete(trial) && !std::isnan(loss)) {
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), loss), loss);
    }
  }
  return measured;
}

Measured GpSampler::violations_of(const Study& study, const Trials& trials) const {
  Measured measured{.points = {}, .values = LossRows(study.settings().limits.size())};
  for (const Trial* const trial : trials) {
    if (!is_complete(trial)) continue;
    measured.points.push_back(coordinates_.encoded(trial->point));
    for (size_t k = 0; k < measured.values.size(); ++k) {
      measured.values[k].push_back(trial->violations[k]);
    }
  }
  return measured;
}

void GpSampler::set_pending(const Study& study, Models& models) const {
  std::set<int64_t> numbers = study.running();
  numbers.insert(study.waiting().begin(), study.waiting().end());
  std::vector<std::vector<double>> points;
  for (const int64_t number : numbers) {
    points.push_back(coordinates_.encoded(study.trials()[static_cast<size_t>(number)].point));
  }
  for (Model& model : models.losses) model.posterior().set_pending(points);
  for (Model& model : models.violations) model.posterior().set_pending(points);
}

// Standard normal numbers for the pending trials, one row per sample.
Matrix GpSampler::normals(const Study& study, int64_t number, size_t quantity, size_t samples,
                          size_t pending) const {
  if (pending == 0) return Matrix(1, 0);
  Random random(study.seed(), number, static_cast<uint32_t>(Draw::kNormals) + quantity);
  Matrix sample = even_sample(samples, pending, random);
  for (size_t s = 0; s < samples; ++s) {
    for (size_t r = 0; r < pending; ++r) sample.at(s, r) = normal_quantile(sample.at(s, r));
  }
  return sample;
}

// Start-up points come from one Sobol sequence for all trials, to fill the space evenly.
Point GpSampler::start_point(const Study& study, int64_t number) const {
  const size_t dimensions = std::min(coordinates_.dimensions().size(), Sobol::kMostDimensions);
  Random random(study.seed(), number, static_cast<uint32_t>(Draw::kStart));
  const std::vector<uint32_t> sobol = Sobol(dimensions).at(static_cast<uint64_t>(number));
  std::vector<double> start;
  for (size_t d = 0; d < coordinates_.dimensions().size(); ++d) {
    const double even = d < dimensions ? scrambled(sobol[d], study.seed(), d) * 0x1p-32 : 0;
    start.push_back(coordinates_.drawn(d, d < dimensions ? even : random.uniform()));
  }
  const Point point = coordinates_.decoded(start);
  return study.space().allows(point) ? point : random_point(study.space(), random);
}

std::vector<Point> GpSampler::promising(const Study& study, int64_t number, const Trials& trials,
                                        Models& models) const {
  const size_t objectives = models.losses.size();
  const size_t pending = models.losses[0].posterior().pending();
  const size_t samples =
      objectives == 1 ? static_cast<size_t>(config_.samples) : kHypervolumeSamples;
  LossRows all, allowed;
  std::vector<std::vector<double>> allowed_points;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!is_complete(trials[i])) continue;
    all.emplace_back();
    for (const Model& model : models.losses) all.back().push_back(model.standard().values[i]);
    if (!is_feasible(*trials[i])) continue;
    allowed.push_back(all.back());
    allowed_points.push_back(coordinates_.encoded(trials[i]->point));
  }
  std::vector<Matrix> normals_of;
  for (size_t q = 0; q < objectives + models.violations.size(); ++q) {
    normals_of.push_back(normals(study, number, q, samples, pending));
  }
  std::vector<Modeled> losses;
  std::vector<ModeledLimit> limits;
  for (size_t k = 0; k < objectives; ++k) {
    losses.push_back({&models.losses[k].posterior(), &normals_of[k]});
  }
  for (size_t k = 0; k < models.violations.size(); ++k) {
    Model& model = models.violations[k];
    limits.push_back({{&model.posterior(), &normals_of[objectives + k]}, model.standard().of(0)});
  }
  Random random(study.seed(), number, static_cast<uint32_t>(Draw::kSearch));
  const auto candidates = static_cast<size_t>(config_.candidates);
  const auto starts = static_cast<size_t>(config_.starts);
  const std::vector<size_t> front = nondominated(allowed);
  std::vector<std::vector<double>> good;
  LossRows best;
  for (const size_t index : front) {
    best.push_back(allowed[index]);
    good.push_back(allowed_points[index]);
  }
  std::unique_ptr<Acquisition> acquisition;
  if (objectives == 1 || best.empty()) {
    const std::optional<double> lowest = best.empty() ? std::nullopt : std::optional(best[0][0]);
    acquisition = log_expected_improvement(losses[0], lowest, std::move(limits));
  } else {
    acquisition = log_expected_hypervolume_improvement(
        losses, best, reference_above(best, all, number), std::move(limits));
  }
  SearchSettings settings{.candidates = candidates, .starts = starts};
  if (objectives > 1) {
    settings.candidates /= 4;
    settings.around_good = settings.candidates / 2;
  }
  return search(*acquisition, coordinates_, good, random, settings);
}

std::optional<Proposal> GpSampler::ask(const Study& study, int64_t number) {
  if (study.count(TrialState::kComplete) < config_.startup || coordinates_.dimensions().empty()) {
    return Proposal{.point = start_point(study, number)};
  }
  const Trials trials = ended_trials(study);
  Models& models = models_of(study);
  const Measured losses = losses_of(study, trials), violations = violations_of(study, trials);
  for (size_t k = 0; k < models.losses.size(); ++k) {
    models.losses[k].update(losses.points, losses.values[k]);
  }
  for (size_t k = 0; k < models.violations.size(); ++k) {
    models.violations[k].update(violations.points, violations.values[k]);
  }
  set_pending(study, models);
  const std::vector<Point> points = promising(study, number, trials, models);
  const auto was_tried = [&study](const Point& point) {
    return std::any_of(study.trials().begin(), study.trials().end(),
                       [&point](const Trial& trial) { return is_same_point(point, trial.point); });
  };
  const auto first_new = std::find_if_not(points.begin(), points.end(), was_tried);
  return Proposal{.point = first_new == points.end() ? points.front() : *first_new};
}

}  // namespace

void visit(config::Visitor& visitor, GpConfig& config) {
  visitor.field({.name = "startup",
                 .help = "complete trials before the model is used; Sobol points until then",
                 .min = 2},
                config.startup);
  visitor.field({.name = "exact", .help = "treat the objective as deterministic (without noise)"},
                config.exact);
  visitor.field(
      {.name = "candidates",
       .help =
           "candidates of the acquisition function per trial; a quarter with several objectives",
       .min = 1},
      config.candidates);
  visitor.field({.name = "starts",
                 .help = "starts of the local search of the acquisition function",
                 .min = 1},
                config.starts);
  visitor.field(
      {.name = "samples",
       .help = "samples of the running trials' losses (Monte Carlo); 16 with several objectives",
       .min = 1},
      config.samples);
  visitor.field(
      {.name = "most_trials",
       .help = "maximum number of finished trials in the model: the best and the last ones",
       .min = 20},
      config.most_trials);
}

std::unique_ptr<Sampler> make_gp(const GpConfig& config, const StudySettings& settings) {
  if (settings.objectives.size() > kMostObjectives) {
    throw UsageError(fmt::format("sampler gp: supports at most {} objectives, got {}",
                                 kMostObjectives, settings.objectives.size()));
  }
  if (config.startup > config.most_trials) {
    throw UsageError(
        fmt::format("sampler gp: startup ({}) must not exceed "
                    "most_trials ({})",
                    config.startup, config.most_trials));
  }
  return std::make_unique<GpSampler>(config, settings);
}

}  // namespace gallop::tune
