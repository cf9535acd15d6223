// Things to look at in the page: one trained agent per task, its matrices, its library and its
// obstruction filter.
#ifndef MSRL_REPORT_EXHIBITS_H_
#define MSRL_REPORT_EXHIBITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msrl/report/analysis.h"
#include "msrl/run/registries.h"

namespace msrl::report {

// Z along an episode without learning.
struct MatrixPrefix {
  int step = 0;                     // transitions so far
  double reward = 0.0;              // of the last one
  double episode = 0.0;             // return so far
  std::vector<double> packed = {};  // upper triangle, row by row
};

struct MatrixExhibit {
  const RunScore* of = nullptr;
  std::vector<std::pair<std::string, int>> blocks = {};  // name and size, in order
  std::vector<std::string> labels = {};                  // one per row and column
  std::vector<MatrixPrefix> prefixes = {};
};

struct LibrarySegment {
  std::int64_t slot = 0, uses = 0, length = 0;
  double reward = 0.0;  // in units of reward_scale
  std::vector<float> head = {}, entry = {}, tail = {};
  bool terminated = false;
};

struct LibraryExhibit {
  const RunScore* of = nullptr;
  std::int64_t size = 0, capacity = 0;
  std::vector<LibrarySegment> segments = {};  // the most used, most used first
};

struct CalibrationBin {
  double predicted = 0.0, observed = 0.0;
  int n = 0;
};

// The last judged futures: predicted probability of not being realizable against what happened.
struct ObstructionExhibit {
  const RunScore* of = nullptr;
  std::optional<double> auroc = {};  // empty while one class is missing
  double ece = 0.0, brier = 0.0, base_rate = 0.0;
  std::optional<double> threshold = {};
  std::vector<std::pair<double, double>> roc =
      {};  // false and true positive rate, from (0,0) to (1,1)
  std::vector<CalibrationBin> calibration = {};
};

// The beginning of an episode, as moving pictures.
struct Clip {
  const RunScore* of = nullptr;
  int runs = 0;          // among which it was chosen: the best last evaluation
  int steps = 0;         // that are shown
  bool ended = false;    // whether these are the whole episode
  double episode = 0.0;  // return of these steps
  int width = 0, height = 0;
  std::string gif = {}, still = {};  // bytes of the files; the still is a PNG of the first frame
};

struct Exhibits {
  std::vector<Clip> clips = {};
  std::vector<MatrixExhibit> matrices = {};
  std::vector<LibraryExhibit> libraries = {};
  std::vector<ObstructionExhibit> obstructions = {};
  std::vector<RecordProblem> problems = {};  // what could not be shown
};

// Of the first finished run with a checkpoint of a transfer method in each task (of any agent that
// adds to another one if no method has that role). Never fails: what goes wrong is a problem.
// `analysis` must outlive the result.
Exhibits CollectExhibits(const RunRecords& records, const Analysis& analysis,
                         const Registries& registries);

// Calls show for one run after the other until it succeeds: the first may have no checkpoint.
// Empty then, or if there is none; else what was wrong with the first.
std::string ShowFirstOf(const std::vector<const RunScore*>& candidates,
                        const std::function<void(const RunScore&)>& show);

// From predictions and outcomes (0 or 1), equally many and at least one.
ObstructionExhibit MakeObstructionExhibit(const std::vector<double>& probability,
                                          const std::vector<std::uint8_t>& obstructed);

}  // namespace msrl::report

#endif  // MSRL_REPORT_EXHIBITS_H_
