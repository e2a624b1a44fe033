-- Questions to a compiled graph, for DuckDB. In the folder of the tables:
--
--     duckdb -init graph.sql          (or, in Python: duckdb.sql(open("graph.sql").read()))
--
-- The columns are explained in abele's docs/graph.md. Do not join edges with vertices: what that
-- would say of compute sets is in traffic. Edges of few vertices are found quickly, as below.

CREATE OR REPLACE VIEW vertices AS SELECT * FROM 'vertices.parquet';
CREATE OR REPLACE VIEW edges AS SELECT * FROM 'edges.parquet';
CREATE OR REPLACE VIEW sets AS SELECT * FROM 'sets.parquet';
CREATE OR REPLACE VIEW links AS SELECT * FROM 'links.parquet';
CREATE OR REPLACE VIEW compute_sets AS SELECT * FROM 'compute_sets.parquet';
CREATE OR REPLACE VIEW traffic AS SELECT * FROM 'traffic.parquet';
CREATE OR REPLACE VIEW chips AS SELECT * FROM 'chips.parquet';
CREATE OR REPLACE VIEW crossings AS SELECT * FROM 'crossings.parquet';
CREATE OR REPLACE VIEW about AS SELECT * FROM 'about.parquet';

-- The vertex that some of the questions are about.
SET VARIABLE vertex = 0;

-- How long each tile computes in each compute set: as long as its busiest worker. Vertices of a
-- supervisor (worker -1) run one after another, as those of one worker do.
CREATE OR REPLACE VIEW tile_cycles AS
SELECT compute_set, tile, max(cycles) AS cycles
FROM (
    SELECT compute_set, tile, worker, sum(cycles) AS cycles
    FROM vertices GROUP BY compute_set, tile, worker
)
GROUP BY compute_set, tile;

-- The critical path: supersteps run one after another, and each waits for its slowest tile.
CREATE OR REPLACE VIEW critical_path AS
SELECT
    s.compute_set, s.name, s.times, s.busiest_tile,
    s.sync_cycles, s.exchange_cycles, s.compute_cycles,
    s.times * (s.sync_cycles + s.exchange_cycles + s.compute_cycles) AS cycles,
    sum(s.times * (s.sync_cycles + s.exchange_cycles + s.compute_cycles))
        OVER (ORDER BY s.compute_set) AS until_its_end
FROM compute_sets AS s
ORDER BY s.compute_set;

-- Size of the graph.
SELECT * FROM about;

-- Layers: vertices, edges that end there, and the cycles of their supersteps.
SELECT
    layer, sum(vertices) AS vertices, sum(edges) AS edges,
    sum(times * (sync_cycles + exchange_cycles + compute_cycles)) AS cycles
FROM compute_sets GROUP BY layer ORDER BY cycles DESC;

-- Lines of the user's file: where the cycles of the supersteps come from.
SELECT
    line, sum(vertices) AS vertices, sum(edges) AS edges,
    sum(times * (sync_cycles + exchange_cycles + compute_cycles)) AS cycles
FROM compute_sets GROUP BY line ORDER BY cycles DESC;

-- Phases of a step of training; any other program is all forward.
SELECT
    phase, sum(vertices) AS vertices, sum(edges) AS edges, sum(connections) AS connections,
    sum(times * (sync_cycles + exchange_cycles + compute_cycles)) AS cycles
FROM compute_sets GROUP BY phase ORDER BY min(compute_set);

-- Chips: vertices, edges within each, and those from and to other chips.
SELECT * FROM chips ORDER BY chip;

-- The chips that exchange most.
SELECT * FROM crossings WHERE source <> destination ORDER BY bytes DESC LIMIT 20;

-- Codelets: how many vertices run each, and for how long.
SELECT codelet, count(*) AS vertices, avg(cycles) AS mean_cycles, max(cycles) AS most_cycles
FROM vertices GROUP BY codelet ORDER BY vertices DESC;

-- The hottest tiles: those that compute longest, over all compute sets.
SELECT tile, sum(cycles) AS cycles, count(*) AS compute_sets
FROM tile_cycles GROUP BY tile ORDER BY cycles DESC, tile LIMIT 20;

-- The critical path.
SELECT * FROM critical_path;

-- The slowest tile of each compute set, and how long its vertices take it.
SELECT compute_set, arg_max(tile, cycles) AS slowest_tile, max(cycles) AS cycles
FROM tile_cycles GROUP BY compute_set ORDER BY compute_set;

-- Balance: of the time that a compute set takes, the share for which an average tile works.
SELECT
    compute_set, count(*) AS tiles, max(cycles) AS slowest,
    sum(cycles) / (max(cycles) * (SELECT tiles FROM about)) AS busy
FROM tile_cycles GROUP BY compute_set HAVING max(cycles) > 0 ORDER BY compute_set;

-- The heaviest traffic between compute sets.
SELECT p.name AS producer, c.name AS consumer, t.loop, t.edges, t.bytes
FROM traffic AS t
JOIN compute_sets AS p ON p.compute_set = t.producer
JOIN compute_sets AS c ON c.compute_set = t.consumer
ORDER BY t.bytes DESC LIMIT 20;

-- Fans: how many vertices one reads on the average, and how many read one.
SELECT
    t.producer, t.consumer,
    t.edges / c.vertices AS producers_of_one, t.edges / p.vertices AS consumers_of_one
FROM traffic AS t
JOIN compute_sets AS p ON p.compute_set = t.producer
JOIN compute_sets AS c ON c.compute_set = t.consumer
WHERE NOT t.loop ORDER BY t.producer, t.consumer;

-- The vertex itself.
SELECT * FROM vertices WHERE id = getvariable('vertex');

-- Its neighbours: whom it reads, and who reads it.
WITH near AS (
    SELECT 'reads' AS how, producer AS id, bytes FROM edges
    WHERE consumer = getvariable('vertex')
    UNION ALL
    SELECT 'is read by', consumer, bytes FROM edges
    WHERE producer = getvariable('vertex')
)
SELECT near.how, near.bytes AS edge_bytes, v.*
FROM near JOIN vertices AS v ON v.id = near.id
WHERE v.id IN (SELECT id FROM near)
ORDER BY near.how, v.id;

-- The tiles that it hears from.
SELECT v.tile, count(*) AS edges, sum(e.bytes) AS bytes
FROM edges AS e JOIN vertices AS v ON v.id = e.producer
WHERE e.consumer = getvariable('vertex')
GROUP BY v.tile ORDER BY bytes DESC, v.tile;
