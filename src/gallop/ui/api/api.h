#pragma once

#include <string>

#include "gallop/track/footprint.h"
#include "gallop/ui/api/event_hub.h"
#include "gallop/ui/http/message.h"
#include "gallop/ui/runs.h"
#include "gallop/ui/searches.h"
#include "gallop/ui/sweeps.h"

namespace gallop::ui::api {

/// The objects from which responses are built.
struct Context {
  Runs& runs;
  Sweeps& sweeps;
  Searches& searches;
  EventHub& events;
  std::string token;    ///< See http::Guard.
  std::string version;  ///< Gallop's version.
  track::Surroundings surroundings{};
};

/// Handles a request below /api/, or for /metrics; responses are JSON unless noted below. Errors
/// are {"error": "one line"} with status 400 (invalid request), 404 (no such run), 405, 422
/// (damaged data), 500 or 503. Runs are looked up by name in the index; no client input is used as
/// a path. Non-finite numbers are "NaN", "Infinity" and "-Infinity"; times are seconds since 1970.
http::Response answer(Context& context, const http::Request& request);

/// GET /api/session: token, version, folder, now, runs (their number).
http::Response session(Context& context, const http::Request& request);
/// GET /api/columns: the names of metrics, params and tags.
http::Response columns(Context& context, const http::Request& request);
/// GET /api/runs?filter&sort&descending&columns&offset&limit: a page of the runs table. `columns`
/// are metrics.NAME, params.NAME and tags.NAME, comma-separated; `sort` may also be name, state,
/// created, seconds or steps.
http::Response runs(Context& context, const http::Request& request);
/// GET /api/groups?by&filter: the runs grouped by the values of a column.
http::Response groups(Context& context, const http::Request& request);

/// GET /api/curves?metric&runs&axis&smoothing&from&to&points: the curves of runs, downsampled to
/// `points` points each; `smooth` is computed before downsampling.
http::Response curves(Context& context, const http::Request& request);
/// GET /api/band?metric&by&filter&axis&smoothing&from&to&points: the Band of each group of runs.
http::Response band(Context& context, const http::Request& request);
/// GET /api/export.csv?metric&runs&axis: all points as CSV.
http::Response export_csv(Context& context, const http::Request& request);
/// GET /api/plot.svg?metric&runs&axis&smoothing&logx&logy: all points as an SVG plot.
http::Response plot_svg(Context& context, const http::Request& request);

/// GET /api/run?name: all details of a run except its points. Unreadable parts are reported as
/// `trouble`.
http::Response run(Context& context, const http::Request& request);
/// GET /api/run/recipe?name: the run's recipe as YAML.
http::Response run_recipe(Context& context, const http::Request& request);
/// GET /api/run/log?name&kind&offset&limit: records of the run's log, oldest first.
http::Response run_log(Context& context, const http::Request& request);
/// GET /api/run/report?name: the names of its figures, its confusion matrix, and its most confident
/// mistakes (track::EvaluationReport); 404 if it has no report.
http::Response run_report(Context& context, const http::Request& request);
/// GET /api/run/figure?name&figure: a figure of the report, as SVG.
http::Response run_figure(Context& context, const http::Request& request);
/// GET /api/run/image?name&image: an image of the report, as PNG.
http::Response run_image(Context& context, const http::Request& request);
/// GET /api/run/schedule?name: the values of its schedules over the whole run (track::RunSchedule);
/// 404 if they were not saved.
http::Response run_schedule(Context& context, const http::Request& request);
/// GET /api/run/samples?name: the first training samples (track::RunSamples); 404 if none were
/// saved.
http::Response run_samples(Context& context, const http::Request& request);
/// GET /api/run/samples/image?name&image: an image of these samples, as PNG.
http::Response run_sample_image(Context& context, const http::Request& request);
/// GET /api/run/profiles?name: the `steps` of the run's profiles; 404 if it has none.
http::Response run_profiles(Context& context, const http::Request& request);
/// GET /api/run/profile?name&step: a profile with its advice (docs/profiling.md); 404 if there is
/// none.
http::Response run_profile(Context& context, const http::Request& request);
/// GET /api/run/profile/trace?name&step&rank: the trace of a process, as a gzip file.
http::Response run_trace(Context& context, const http::Request& request);
/// GET /metrics: the state of running runs, and of those that ended within ten minutes, for
/// Prometheus (track/prometheus.h).
http::Response prometheus(Context& context, const http::Request& request);
/// GET /api/compare?runs: options and origins of runs side by side.
http::Response compare(Context& context, const http::Request& request);

/// GET /api/sweeps: the sweeps of the folder with their progress and best trials. Unreadable parts
/// of one are reported as `trouble`.
http::Response sweeps(Context& context, const http::Request& request);
/// GET /api/sweep?name: all details of a sweep except the reports of its trials. A trial's `run` is
/// the name of its run in the table.
http::Response sweep(Context& context, const http::Request& request);
/// GET /api/sweep/plot.svg?name&kind: a plot of the sweep (tune::plot_kinds()).
http::Response sweep_plot(Context& context, const http::Request& request);

/// GET /api/searches: the searches of 'gallop optimize' with their progress. Unreadable parts of
/// one are reported as `trouble`.
http::Response searches(Context& context, const http::Request& request);
/// GET /api/search?name: the `report` of a search, or what is known of it so far, null before its
/// first change, and the `experiments` of its journal.
http::Response search(Context& context, const http::Request& request);
/// GET /api/search/plot.svg?name: the waterfall of a search; 404 if it has not ended.
http::Response search_plot(Context& context, const http::Request& request);

/// POST /api/tag {run, key, value}: sets a tag; null removes it.
http::Response tag(Context& context, const http::Request& request);
/// POST /api/note {run, text}: sets the note.
http::Response note(Context& context, const http::Request& request);
/// POST /api/delete {run}: moves the run to the trash.
http::Response delete_run(Context& context, const http::Request& request);
/// POST /api/restore {run}: restores it from the trash.
http::Response restore_run(Context& context, const http::Request& request);

/// GET /api/events: a stream of server-sent events (see EventHub).
http::Response events(Context& context, const http::Request& request);

}  // namespace gallop::ui::api
