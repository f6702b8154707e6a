#pragma once

#include <string>

#include "gallop/track/footprint.h"
#include "gallop/ui/api/event_hub.h"
#include "gallop/ui/http/message.h"
#include "gallop/ui/runs.h"
#include "gallop/ui/sweeps.h"

namespace gallop::ui::api {

/// What answers are made of.
struct Context {
  Runs& runs;
  Sweeps& sweeps;
  EventHub& events;
  std::string token;    ///< See http::Guard.
  std::string version;  ///< Of Gallop.
  track::Surroundings surroundings{};
};

/// Answers what is asked for below /api/, and /metrics, as JSON, unless it says otherwise below.
/// What is wrong is told as {"error": "one line"} with 400 (wrong use), 404 (no such run), 405, 422
/// (damaged data), 500 or 503. Runs are looked up by their names in the index; nothing that a
/// client says is a path. Numbers that JSON has not are "NaN", "Infinity" and "-Infinity"; times
/// are seconds since 1970.
http::Response answer(Context& context, const http::Request& request);

/// GET /api/session: token, version, folder, now, runs (how many).
http::Response session(Context& context, const http::Request& request);
/// GET /api/columns: names of metrics, params and tags.
http::Response columns(Context& context, const http::Request& request);
/// GET /api/runs?filter&sort&descending&columns&offset&limit: a page of the table of runs.
/// `columns` are metrics.NAME, params.NAME and tags.NAME, between commas; `sort` may also be name,
/// state, created, seconds or steps.
http::Response runs(Context& context, const http::Request& request);
/// GET /api/groups?by&filter: the runs by what they have in a column.
http::Response groups(Context& context, const http::Request& request);

/// GET /api/curves?metric&runs&axis&smoothing&from&to&points: the lines of some runs, reduced to so
/// many points each, with the values of `smooth` taken over all of them before.
http::Response curves(Context& context, const http::Request& request);
/// GET /api/band?metric&by&filter&axis&smoothing&from&to&points: see Band, of each group of runs.
http::Response band(Context& context, const http::Request& request);
/// GET /api/export.csv?metric&runs&axis: every point, as CSV.
http::Response export_csv(Context& context, const http::Request& request);
/// GET /api/plot.svg?metric&runs&axis&smoothing&logx&logy: every point, drawn.
http::Response plot_svg(Context& context, const http::Request& request);

/// GET /api/run?name: all that is known of a run but its points. What of it cannot be read is told
/// as `trouble`.
http::Response run(Context& context, const http::Request& request);
/// GET /api/run/recipe?name: its recipe, as YAML.
http::Response run_recipe(Context& context, const http::Request& request);
/// GET /api/run/log?name&kind&offset&limit: records of its log, the first written first.
http::Response run_log(Context& context, const http::Request& request);
/// GET /api/run/report?name: the names of its figures, which classes the model takes for which, and
/// its surest mistakes (track::EvaluationReport); 404 where it has none.
http::Response run_report(Context& context, const http::Request& request);
/// GET /api/run/figure?name&figure: one of the report's figures, an SVG file.
http::Response run_figure(Context& context, const http::Request& request);
/// GET /api/run/image?name&image: one of the report's images, a PNG file.
http::Response run_image(Context& context, const http::Request& request);
/// GET /api/run/schedule?name: what its schedules come to along its whole length
/// (track::RunSchedule); 404 where that was not kept.
http::Response run_schedule(Context& context, const http::Request& request);
/// GET /api/run/samples?name: the first samples that its model saw (track::RunSamples); 404 where
/// none were kept.
http::Response run_samples(Context& context, const http::Request& request);
/// GET /api/run/samples/image?name&image: one of their images, a PNG file.
http::Response run_sample_image(Context& context, const http::Request& request);
/// GET /metrics: how the runs stand that train, or have ended within ten minutes, for Prometheus
/// (track/prometheus.h).
http::Response prometheus(Context& context, const http::Request& request);
/// GET /api/compare?runs: options and origins of some runs side by side.
http::Response compare(Context& context, const http::Request& request);

/// GET /api/sweeps: the sweeps of the folder, each with how it stands and its best trials. What
/// cannot be read of one is told as `trouble`.
http::Response sweeps(Context& context, const http::Request& request);
/// GET /api/sweep?name: all that is known of one but the reports of its trials. A trial's `run` is
/// the name of its run in the table.
http::Response sweep(Context& context, const http::Request& request);
/// GET /api/sweep/plot.svg?name&kind: one of its plots (tune::plot_kinds()).
http::Response sweep_plot(Context& context, const http::Request& request);

/// POST /api/tag {run, key, value}: null removes it.
http::Response tag(Context& context, const http::Request& request);
/// POST /api/note {run, text}
http::Response note(Context& context, const http::Request& request);
/// POST /api/delete {run}: to the trash.
http::Response delete_run(Context& context, const http::Request& request);
/// POST /api/restore {run}: back from there.
http::Response restore_run(Context& context, const http::Request& request);

/// GET /api/events: a stream (see EventHub).
http::Response events(Context& context, const http::Request& request);

}  // namespace gallop::ui::api
