"""Passages of everyday text, written for Nightbench and under its licence: what people paste into a prompt."""

_TEXT = """
Dear Ms Okafor, thank you for your order of 14 March. Two of the five lamps arrived with a cracked shade. We sent
replacements today by courier; they should reach you on Thursday before noon. Please keep the broken shades until
the driver has taken them back. You will not be charged for the return. If Thursday does not suit you, reply to this
message and we will arrange another day.
~~~
Heat two spoons of oil in a wide pan. Add the onion and a pinch of salt and cook slowly for ten minutes, until soft
but not brown. Stir in the garlic, the cumin and the paprika, and wait until they smell sweet. Add the chickpeas
with half of their water, then the tomatoes. Let everything simmer for twenty minutes. Before serving, squeeze half
a lemon over the pan and scatter the parsley.
~~~
def merge(left, right):
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    merged.extend(left[i:])
    merged.extend(right[j:])
    return merged


def merge_sort(values):
    if len(values) < 2:
        return list(values)
    middle = len(values) // 2
    return merge(merge_sort(values[:middle]), merge_sort(values[middle:]))
~~~
The river rises in a bog at 780 metres and falls for sixty kilometres through beech woods before it meets the plain.
Until 1911 logs were floated down it every spring. The floating ended when the railway came, and the dams that had
held back the meltwater were left to rot. Two have been rebuilt. Below the second one the water is deep and slow,
and people from the town swim there in August.
~~~
Minutes of the meeting of 3 June. Present: Alvarez, Brandt, Chen, Dube. Brandt reported that the migration of the
billing database took four hours longer than planned because an index was built twice. Chen will write down what
happened by Friday. Dube asked for a second rehearsal before the customer database is moved. This was agreed.
Alvarez will book the maintenance window for the night of 21 June and tell support.
~~~
region,quarter,units,revenue_eur,returns
north,Q1,1840,92310.50,37
north,Q2,2012,99874.00,41
south,Q1,1511,70220.25,18
south,Q2,1498,69981.75,22
east,Q1,990,47820.00,9
east,Q2,1204,58312.40,11
west,Q1,2310,118400.00,64
west,Q2,2287,116050.90,59
islands,Q1,120,6100.00,1
islands,Q2,164,8344.00,2
~~~
A bicycle stays upright because it is steered, not because its wheels spin. When it begins to fall to the left, the
rider turns the bar a little to the left, the wheels come back under the weight, and the fall stops. Geometry helps:
the front wheel touches the road behind the point where the steering axis meets it, so that it turns into a fall by
itself. This is why an empty bicycle rolls down a hill for a while before it falls over.
~~~
2026-05-02 04:11:07 WARN pool exhausted, waiting 250 ms (active=64 idle=0)
2026-05-02 04:11:08 WARN pool exhausted, waiting 500 ms (active=64 idle=0)
2026-05-02 04:11:09 ERROR request 8812 failed: timeout after 2000 ms
2026-05-02 04:11:09 INFO retry 1 of 3 for request 8812
2026-05-02 04:11:12 INFO request 8812 done in 2871 ms
2026-05-02 04:11:15 INFO pool recovered (active=12 idle=52)
~~~
The flat has two rooms and a kitchen that looks onto the yard. Heating is included in the rent, electricity is not.
The tenant may keep one small pet. Walls may be painted in light colours without asking; holes must be filled before
the flat is returned. Either side may end this contract with three months' notice, in writing, at the end of a
month. The deposit is two months' rent and is paid back within sixty days after the keys.
~~~
A shop sells apples at 0.60 each and pears at 0.85 each. Mira buys fruit for 14.55 in all. She buys three more
apples than pears. How many of each does she buy? Her brother buys the same fruit a week later, when apples cost ten
per cent more and pears five per cent less. How much more or less does he pay, and by how much would the price of
pears have to fall for both to pay the same?
~~~
Most people believe that cats fear water. Some do, yet breeds from hot and dry lands often play with a dripping tap.
What many cats dislike is surprise: a bath comes from above, is loud, and leaves the coat heavy for hours. A cat
that has been near shallow water since it was a few weeks old treats it as another toy. Vets advise to let a cat
decide, to keep the water warm, and to leave the door open.
~~~
SELECT c.name, count(*) AS orders, sum(o.total) AS spent
FROM customers AS c
JOIN orders AS o ON o.customer_id = c.id
WHERE o.placed_at >= DATE '2026-01-01' AND o.status <> 'cancelled'
GROUP BY c.id, c.name
HAVING sum(o.total) > 500
ORDER BY spent DESC
LIMIT 20;
~~~
On the second day the wind turned to the north and the harbour filled with boats that had meant to sail at dawn. We
ate bread and cold fish on deck and listened to the radio, where a calm voice repeated the same numbers every hour.
Toward evening an old man in a yellow coat walked along the pier, looked at our mooring lines, untied one of them
without a word, tied it again in another way, and went home.
~~~
Before you update, make a copy of the data folder and note the version that is shown under Help. Stop the service
and wait until its process has ended. Unpack the new version into an empty folder: never over the old one. Copy the
configuration file, compare it with the sample that comes with the new version, and add what is missing. Start the
service. If it does not answer within a minute, read the last lines of its log.
~~~
The patient, a man of 54, reports pain in the left knee for six weeks, worse on stairs and after sitting for a long
time. No injury is known. The joint is slightly swollen, not warm; bending is full, stretching hurts at the end. He
takes tablets for high blood pressure and has no allergies. An X-ray was normal. Advice: exercises for the thigh
twice a day, no kneeling at work, and a visit again in four weeks.
~~~
Interviewer: You were twenty-six when you built your first clock. Why clocks? Maker: Because a clock tells you each
day whether you were right. A chair can be slightly wrong for a hundred years. Interviewer: And were you right?
Maker: The first one lost nine minutes a day. I took it apart eleven times. The fault was a pin that was a hair too
long. Since then I measure first and have an opinion later.
~~~
Our town has 8,200 inhabitants and one bus line. It runs every forty minutes and is late on one day of three. The
council now proposes to replace it by small cars that are called by telephone. Supporters say that a car comes when
it is needed. Opponents say that pupils need a timetable, and that a call centre will cost more than the driver.
Both sides agree on one thing: nobody has counted how many people ride the bus.
~~~
name: build
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ['3.11', '3.12', '3.13']
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: pip install -e .[dev]
      - run: pytest -q --maxfail=5
~~~
Steel rusts because iron, water and oxygen together make a compound that takes more room than the iron did, so that
it flakes off and bares new metal. Zinc slows this in two ways. It forms a tight layer of its own, and where that
layer is scratched it gives up its electrons more willingly than iron, and dissolves first. A bridge that is
galvanised and painted can stand for sixty years before anybody has to climb up with a brush.
~~~
Hi all, I am trying to read a file of about 40 GB line by line and my script is killed after some minutes. I use
readlines() and then a loop in which I split each line by tabs and count the words in a dictionary. The machine has
16 GB of memory. I also tried to read the file in chunks of 1 GB, but then words at the border are counted as two.
What is the usual way to do this? Thanks, and sorry if this was asked before.
~~~
The company earned 3.1 million in the first half of the year, after 2.7 million in the year before. Most of the
growth came from service contracts, which renew each year and cost little to keep. Sales of new machines fell by
four per cent, since two large buyers put off their orders. The board expects both orders before December and keeps
its forecast. It proposes a dividend of 40 cents a share, the same as last year.
~~~
To plant a hedge, dig a trench as deep as a spade and twice as wide. Loosen its floor with a fork. Set the plants so
that the soil reaches the same height on their stems as it did in the nursery, four to a metre. Fill the trench,
tread it firm, and water it even if it rains. Cut every plant back by a third at once: it looks cruel, and it is why
the hedge will be thick at its foot and not only at its top.
~~~
Once a year the lake is drained. The men open the gate on a Monday, and by Thursday only a brown pond is left in the
middle, boiling with carp. They stand in it up to the chest and pull the net toward the shore, slowly, while someone
on the bank calls the step. Children are allowed to miss school. At noon there is soup. By evening the gate is
closed, and a thin sheet of water begins to creep back over the mud.
~~~
A good error message has three parts. It says what the program was doing, what went wrong, and what the reader can
do now. It names the file, the line and the value, and it does not apologise. It uses the words of the person who
reads it, not those of the code. Above all it is true: a message that guesses at the cause and is wrong costs more
time than one that says nothing. Test it by breaking things on purpose and reading what comes out.
"""
PASSAGES = tuple(_TEXT.strip("\n").split("\n~~~\n"))
