#include "gallop/optimize/experiment_json.h"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace gallop::optimize {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

double number_of(const Json& json, double otherwise) {
  return json.is_null() ? otherwise : json.get<double>();
}

Estimate estimate_of(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {.value = number_of(json.at("value"), std::nan("")),
          .low = number_of(json.at("low"), -kInfinity),
          .high = number_of(json.at("high"), kInfinity),
          .rounds = json.at("rounds").get<int64_t>()};
}

std::optional<Estimate> optional_estimate(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return estimate_of(json.at(key));
}

Speed speed_of(const Json& json) {
  return {.samples_per_second = json.at("samples_per_second").get<double>(),
          .joules_per_sample = json.at("joules_per_sample").get<double>(),
          .peak_bytes = json.at("peak_bytes").get<int64_t>()};
}

// Calls `visit` with the name and reference of each field.
template <typename AnySettings, typename Visit>
void visit_fields(AnySettings& settings, const Visit& visit) {
  visit("precision", settings.precision);
  visit("channels_last", settings.channels_last);
  visit("has_convolutions", settings.has_convolutions);
  visit("compiles", settings.compiles);
  visit("verifies", settings.verifies);
  visit("is_on_cpu", settings.is_on_cpu);
  visit("processes", settings.processes);
  visit("cores", settings.cores);
  visit("threads", settings.threads);
  visit("sets_threads", settings.sets_threads);
  visit("splits_batch_norm", settings.splits_batch_norm);
  visit("data_threads", settings.data_threads);
  visit("samples", settings.samples);
  visit("batch_size", settings.batch_size);
  visit("micro_batches", settings.micro_batches);
  visit("recomputes", settings.recomputes);
  visit("epochs", settings.epochs);
  visit("loss", settings.loss);
  visit("optimizer", settings.optimizer);
  visit("schedule", settings.schedule);
  visit("lr", settings.lr);
  visit("momentum", settings.momentum);
  visit("sets_weight_decay", settings.sets_weight_decay);
  visit("has_parameter_groups", settings.has_parameter_groups);
  visit("scales_lr", settings.scales_lr);
  visit("counts_steps", settings.counts_steps);
  visit("wrappers", settings.wrappers);
  visit("label_smoothing", settings.label_smoothing);
  visit("has_classes", settings.has_classes);
  visit("can_resize", settings.can_resize);
  visit("caches", settings.caches);
  visit("metric", settings.metric);
  visit("higher_is_better", settings.higher_is_better);
}

template <typename T>
void write(Json& json, const T& value) {
  json = value;
}
void write(Json& json, const std::optional<double>& value) { json = value ? Json(*value) : Json(); }

template <typename T>
void read(const Json& json, T& value) {
  json.get_to(value);
}
void read(const Json& json, std::optional<double>& value) {
  value = json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace

Json json_of(const Estimate& one) {
  return {{"value", number(one.value)},
          {"low", number(one.low)},
          {"high", number(one.high)},
          {"rounds", one.rounds}};
}

Json json_of(const Speed& one) {
  return {{"samples_per_second", one.samples_per_second},
          {"joules_per_sample", one.joules_per_sample},
          {"peak_bytes", one.peak_bytes}};
}

Json json_of(const Settings& one) {
  Json json;
  visit_fields(one, [&](const char* name, const auto& value) { write(json[name], value); });
  return json;
}

Json json_of(const std::vector<Prediction>& all) {
  Json json = Json::array();
  for (const Prediction& one : all) {
    json.push_back({{"rule", one.rule},
                    {"finding", one.finding},
                    {"options", one.options},
                    {"gain", {{"low", one.low}, {"high", one.high}, {"basis", one.basis}}}});
  }
  return json;
}

Json json_of(const Comparison& one) {
  Json json = {{"base", json_of(one.base)},
               {"changed", json_of(one.changed)},
               {"speedup", json_of(one.speedup)}};
  if (one.energy_gain) json["energy_gain"] = json_of(*one.energy_gain);
  if (one.loss_change) json["loss_change"] = json_of(*one.loss_change);
  json["compared_steps"] = one.compared_steps;
  json["energy_method"] = one.energy_method;
  if (!one.failure.empty()) json["failure"] = one.failure;
  return json;
}

Json json_of(const TrainingResult& one) {
  Json points = Json::array();
  for (const TrainingResult::Point& point : one.evaluations) {
    points.push_back({{"epochs", point.epochs}, {"metric", number(point.metric)}});
  }
  Json json = {
      {"folder", one.folder}, {"evaluations", points}, {"training_seconds", one.training_seconds}};
  if (!one.failure.empty()) json["failure"] = one.failure;
  return json;
}

Settings settings_of(const Json& json) {
  Settings settings;
  visit_fields(settings, [&](const char* name, auto& value) { read(json.at(name), value); });
  return settings;
}

std::vector<Prediction> predictions_of(const Json& json) {
  std::vector<Prediction> all;
  for (const Json& one : json) {
    const Json& gain = one.at("gain");
    all.push_back({.rule = one.at("rule").get<std::string>(),
                   .finding = one.at("finding").get<std::string>(),
                   .options = one.at("options").get<std::vector<std::string>>(),
                   .low = gain.at("low").get<double>(),
                   .high = gain.at("high").get<double>(),
                   .basis = gain.at("basis").get<std::string>()});
  }
  return all;
}

Comparison comparison_of(const Json& json) {
  return {.base = speed_of(json.at("base")),
          .changed = speed_of(json.at("changed")),
          .speedup = estimate_of(json.at("speedup")),
          .energy_gain = optional_estimate(json, "energy_gain"),
          .loss_change = optional_estimate(json, "loss_change"),
          .compared_steps = json.at("compared_steps").get<int64_t>(),
          .failure = json.value("failure", ""),
          .energy_method = json.at("energy_method").get<std::string>()};
}

TrainingResult run_of(const Json& json) {
  TrainingResult run{.folder = json.at("folder").get<std::string>(),
                     .training_seconds = json.at("training_seconds").get<double>(),
                     .failure = json.value("failure", "")};
  for (const Json& point : json.at("evaluations")) {
    run.evaluations.push_back({.epochs = point.at("epochs").get<double>(),
                               .metric = number_of(point.at("metric"), std::nan(""))});
  }
  return run;
}

}  // namespace gallop::optimize
