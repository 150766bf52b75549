# test/lib/demo.gp
#		The picture of test/demo.sh: answers in time over offered load.
#
# Variables, set with gnuplot -e: data (a file with the columns multiple of
# the capacity, answers per second with mode = off, with mode = enforce),
# output (a PNG file), capacity (per second), deadline (ms), query (ms).

stats data using 2 nooutput name "off"
stats data using 3 nooutput name "enforce"
highest = capacity
if (off_max > highest) { highest = off_max }
if (enforce_max > highest) { highest = enforce_max }

set terminal pngcairo size 1000,560 font "sans,12" background rgb "white"
set output output

set title sprintf("A %d ms query on %s, clients that give up after %g s", \
	query, machine, deadline / 1000.0) font ",14"
set xlabel "offered load, multiples of the capacity (log scale)"
set ylabel "answers in time per second"
set logscale x
set xrange [0.45:11.5]
set yrange [0:highest * 1.35]
set xtics ("0.5 ×" 0.5, "1 ×" 1, "2 ×" 2, "4 ×" 4, "10 ×" 10)
set ytics nomirror
set xtics nomirror
set border 3 lc rgb "#444444"
set grid ytics lc rgb "#dddddd" lt 1
set key top left reverse Left samplen 3 spacing 1.3

set style line 1 lc rgb "#c0392b" lw 3 pt 7 ps 1.4
set style line 2 lc rgb "#1f6f8b" lw 3 pt 5 ps 1.4
set style line 3 lc rgb "#888888" lw 1.5 dt 2

plot capacity with lines ls 3 title sprintf("capacity, measured: %.0f/s", capacity), \
	data using 1:3 with linespoints ls 2 title "pg\\_admission, mode = enforce", \
	data using 1:2 with linespoints ls 1 title "plain PostgreSQL, mode = off"
